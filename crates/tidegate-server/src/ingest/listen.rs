use super::connections::ConnectionSlot;
use super::serve::{SenderContext, serve};
use super::stop::Stop;
use crate::http::wire;
use std::time::Duration;
use tidegate::pipeline::Protocol;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Takes connections of one protocol until told to stop, then waits for those that are open.
pub async fn listen(listener: TcpListener, protocol: Protocol, context: SenderContext) {
    let mut serving = JoinSet::new();
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
                    let context = context.clone();
                    serving.spawn(async move {
                        serve(tcp, peer, protocol, context).await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, protocol = protocol.name(), "could not accept a sender");
                    // Out of descriptors or memory: accepting again at once would spin.
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
    drop(listener);
    while serving.join_next().await.is_some() {}
}
