//! HTTP/2 connection: one task for the connection, and one for each exchange.

use super::connector::Connector;
use super::event::{ConnectionId, Dispatch, Ended, Event, Link, Opened};
use super::exchange::{Outcome, exchange};
use crate::generator::driver::Failure;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpStream;

type Sender = http2::SendRequest<Full<Bytes>>;
type Driving = http2::Connection<TokioIo<TcpStream>, Full<Bytes>, TokioExecutor>;

/// Flow-control windows of a stream and of a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Interval of polling for the server's settings, which hyper does not signal.
const SETTINGS_POLL: Duration = Duration::from_millis(1);

/// Sending half of an HTTP/2 connection.
#[derive(Clone)]
struct Http2Link {
    sender: Sender,
    connector: Connector,
    id: ConnectionId,
    /// A response has arrived.
    worked: Arc<AtomicBool>,
}

/// Opens a connection and drives it until it ends.
pub(in crate::generator) async fn connection(connector: Connector, id: ConnectionId) {
    let begin = connector.clock.now();
    let opening = tokio::time::timeout(connector.timeout, open(&connector));
    let opened = opening.await.unwrap_or_else(|elapsed| Err(elapsed.into()));
    let (sender, mut driving) = match opened {
        Ok(opened) => opened,
        Err(error) => return connector.report(Event::NotOpened(error)),
    };
    let room_max = connector.streams_max;
    let mut room = driving.current_max_send_streams().min(room_max);
    let worked = Arc::new(AtomicBool::new(false));
    let link = Http2Link { sender, connector: connector.clone(), id, worked };
    let took = connector.clock.now() - begin;
    connector.report(Event::Opened(Opened { id, link: Box::new(link), room, took }));
    poll_fn(|cx| {
        let ended = Pin::new(&mut driving).poll(cx);
        let now = driving.current_max_send_streams().min(room_max);
        if now != room {
            room = now;
            connector.report(Event::Room(id, room));
        }
        ended.map(drop)
    })
    .await;
    connector.report(Event::Closed(id));
}

/// Connects and waits for the server's stream limit: requests sent before it may wait unseen within the
/// connection.
async fn open(connector: &Connector) -> io::Result<(Sender, Driving)> {
    let tcp = connector.connect().await?;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_max_send_streams(0);
    builder.initial_stream_window_size(STREAM_WINDOW);
    builder.initial_connection_window_size(CONNECTION_WINDOW);
    let opened = builder.handshake(TokioIo::new(tcp)).await.map_err(io::Error::other)?;
    let (sender, mut driving) = opened;
    let mut poll = tokio::time::interval(SETTINGS_POLL);
    poll_fn(|cx| {
        loop {
            if let Poll::Ready(ended) = Pin::new(&mut driving).poll(cx) {
                let error =
                    ended.err().map_or(io::ErrorKind::UnexpectedEof.into(), io::Error::other);
                return Poll::Ready(Err(error));
            }
            if driving.current_max_send_streams() > 0 {
                return Poll::Ready(Ok(()));
            }
            std::task::ready!(poll.poll_tick(cx));
        }
    })
    .await?;
    Ok((sender, driving))
}

// === impl Http2Link ===

impl Link for Http2Link {
    /// Sends the request on its own task.
    fn dispatch(&self, dispatch: Dispatch) -> bool {
        tokio::spawn(self.clone().exchange(dispatch));
        true
    }
}

impl Http2Link {
    async fn exchange(mut self, dispatch: Dispatch) {
        let Dispatch { flight, request, deadline } = dispatch;
        let clock = self.connector.clock;
        let sent = clock.now();
        let exchange = exchange(self.sender.try_send_request(request));
        let outcome = match deadline.and_then(|at| clock.instant(at)) {
            // A drop resets the stream; the connection stays open.
            Some(until) => tokio::time::timeout_at(until.into(), exchange)
                .await
                .unwrap_or(Outcome::Failed(Failure::Deadline)),
            None => exchange.await,
        };
        let result = match outcome {
            Outcome::Answered(head) => Ok(head),
            Outcome::Failed(failure) => Err(failure),
            Outcome::NotWritten => {
                let worked = self.worked.load(Ordering::Relaxed);
                return self.connector.report(Event::Returned { flight, worked });
            }
        };
        if result.is_ok() {
            self.worked.store(true, Ordering::Relaxed);
        }
        let at = clock.now();
        self.connector.report(Event::Ended(Ended {
            connection: self.id,
            flight,
            sent,
            at,
            result,
        }));
        self.connector.report(Event::Free(self.id));
    }
}
