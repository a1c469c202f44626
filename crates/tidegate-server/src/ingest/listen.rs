use super::connections::ConnectionSlot;
use super::serve::{SenderContext, serve};
use super::stop::Stop;
use crate::http::port::AcceptErrors;
use crate::http::tls::{PeerCertificate, TlsPort};
use crate::http::wire;
use std::sync::Arc;
use tidegate::pipeline::Protocol;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Takes connections of one protocol until told to stop, then waits for those that are open.
pub async fn listen(
    listener: TcpListener,
    protocol: Protocol,
    context: SenderContext,
    tls: Option<Arc<TlsPort>>,
) {
    let mut serving = JoinSet::new();
    let mut errors = AcceptErrors::new(protocol.name());
    let mut stopping = context.stopping.clone();
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stop| *stop >= Stop::Drain) => break,
            // Those that have ended are let go of as they end.
            Some(_) = serving.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((tcp, peer)) => {
                    let (open, max) = (&context.connections, context.connections_max);
                    let Some(slot) = ConnectionSlot::take(open, max, protocol) else {
                        // Closed without a word: neither protocol has one for this, and a client tries again.
                        tracing::debug!(%peer, "refused at ingest.connections_max");
                        continue;
                    };
                    if let Err(error) = wire::prepare(&tcp) {
                        tracing::debug!(%error, %peer, "a sender left before it was served");
                        continue;
                    }
                    let (context, tls) = (context.clone(), tls.clone());
                    serving.spawn(async move {
                        match tls {
                            None => serve(tcp.into_split(), (peer, None), &slot, context).await,
                            Some(tls) => {
                                let mut stopping = context.stopping.clone();
                                let stream = tokio::select! {
                                    stream = tls.accept(tcp, context.idle_timeout) => stream,
                                    () = slot.peer().evicted() => None,
                                    _ = stopping.wait_for(|stop| *stop >= Stop::Drain) => None,
                                };
                                if let Some(stream) = stream {
                                    let peer = (peer, PeerCertificate::of(stream.get_ref().1));
                                    serve(tokio::io::split(stream), peer, &slot, context).await;
                                }
                            }
                        }
                        drop(slot);
                    });
                }
                Err(error) => errors.pause_after(&error).await,
            }
        }
    }
    drop(listener);
    while serving.join_next().await.is_some() {}
}
