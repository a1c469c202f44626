//! A connection over HTTP/2: one task for the connection, and one for each exchange on it.

use super::connect::Connector;
use super::driver::Failure;
use super::event::{ConnectionId, Departure, Ended, Event, Link, Opened};
use super::exchange::{Outcome, exchange};
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

/// What a server may send before it was read: of one answer, and of all on a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// How often is looked whether the server's settings have come: nothing tells it.
const SETTINGS_LOOK: Duration = Duration::from_millis(1);

/// How requests get to a connection.
#[derive(Clone)]
pub(super) struct Http2Link {
    sender: Sender,
    connector: Connector,
    id: ConnectionId,
    /// An answer came on it.
    worked: Arc<AtomicBool>,
}

/// Opens a connection and drives it until it ends.
pub(super) async fn connection(connector: Connector, id: ConnectionId) {
    let begin = connector.clock.now();
    let opening = tokio::time::timeout(connector.timeout, open(&connector));
    let opened = opening.await.unwrap_or_else(|elapsed| Err(elapsed.into()));
    let (sender, mut driving) = match opened {
        Ok(opened) => opened,
        Err(error) => return connector.tell(Event::NotOpened(error)),
    };
    let room_max = connector.streams_max;
    let mut room = driving.current_max_send_streams().min(room_max);
    let worked = Arc::new(AtomicBool::new(false));
    let link = Http2Link { sender, connector: connector.clone(), id, worked };
    let took = connector.clock.now() - begin;
    connector.tell(Event::Opened(Opened { id, link: Link::Http2(link), room, took }));
    poll_fn(|cx| {
        let ended = Pin::new(&mut driving).poll(cx);
        let now = driving.current_max_send_streams().min(room_max);
        if now != room {
            room = now;
            connector.tell(Event::Room(id, room));
        }
        ended.map(drop)
    })
    .await;
    connector.tell(Event::Closed(id));
}

/// Open is a connection when the server has said how many requests it takes at once: what is sent before that may
/// wait within the connection, where nobody would see it.
async fn open(connector: &Connector) -> io::Result<(Sender, Driving)> {
    let tcp = connector.connect().await?;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_max_send_streams(0);
    builder.initial_stream_window_size(STREAM_WINDOW);
    builder.initial_connection_window_size(CONNECTION_WINDOW);
    let opened = builder.handshake(TokioIo::new(tcp)).await.map_err(io::Error::other)?;
    let (sender, mut driving) = opened;
    let mut look = tokio::time::interval(SETTINGS_LOOK);
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
            std::task::ready!(look.poll_tick(cx));
        }
    })
    .await?;
    Ok((sender, driving))
}

// === impl Http2Link ===

impl Http2Link {
    /// Sends a request, on a task of its own.
    pub fn depart(&self, departure: Departure) {
        tokio::spawn(self.clone().fly(departure));
    }

    async fn fly(mut self, departure: Departure) {
        let Departure { flight, request, deadline } = departure;
        let clock = self.connector.clock;
        let sent = clock.now();
        let exchange = exchange(self.sender.try_send_request(request));
        let outcome = match deadline.and_then(|at| clock.instant(at)) {
            // Given up by dropping it: the stream is reset, and the connection lives on.
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
                return self.connector.tell(Event::Returned { flight, worked });
            }
        };
        if result.is_ok() {
            self.worked.store(true, Ordering::Relaxed);
        }
        let at = clock.now();
        self.connector.tell(Event::Ended(Ended { connection: self.id, flight, sent, at, result }));
        self.connector.tell(Event::Free(self.id));
    }
}
