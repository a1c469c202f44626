//! HTTP/1.1 connection: one task drives the connection and its exchange, so that a request is written in the poll
//! in which it arrives.

use super::connector::Connector;
use super::event::{ConnectionId, Dispatch, Ended, Event, Link, Opened};
use super::exchange::{Outcome, exchange};
use crate::generator::driver::Failure;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep};

type Driving = http1::Connection<TokioIo<TcpStream>, Full<Bytes>>;

/// Read buffer; a longer response head is invalid.
const READ_BUFFER: usize = 64 * 1024;

/// Sending half of an HTTP/1.1 connection.
struct Http1Link(mpsc::Sender<Dispatch>);

struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driving: Driving,
    /// `driving` has ended and must not be polled again.
    is_over: bool,
    /// A response has arrived.
    worked: bool,
    deadline_timer: DeadlineTimer,
}

/// Timer of the deadline. It is reset only when needed: a reset per request would move it in the runtime's wheel.
struct DeadlineTimer {
    timer: Pin<Box<Sleep>>,
    until: Option<Instant>,
}

/// Opens a connection and serves requests until it ends.
pub(in crate::generator) async fn connection(connector: Connector, id: ConnectionId) {
    let begin = connector.clock.now();
    let mut connection = match open(&connector).await {
        Ok(connection) => connection,
        Err(error) => return connector.report(Event::NotOpened(error)),
    };
    let (link, mut dispatches) = mpsc::channel(1);
    let took = connector.clock.now() - begin;
    connector.report(Event::Opened(Opened { id, link: Box::new(Http1Link(link)), room: 1, took }));
    while let Some(dispatch) = poll_fn(|cx| connection.poll_next(cx, &mut dispatches)).await {
        let goes_on = connection.exchange(&connector, id, dispatch).await;
        if !goes_on || !poll_fn(|cx| connection.poll_ready(cx)).await {
            break;
        }
        connector.report(Event::Free(id));
    }
    dispatches.close();
    while let Ok(Dispatch { flight, .. }) = dispatches.try_recv() {
        connector.report(Event::Returned { flight, worked: connection.worked });
    }
    connector.report(Event::Closed(id));
}

async fn open(connector: &Connector) -> io::Result<Connection> {
    let tcp = connector.connect().await?;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(READ_BUFFER);
    let (sender, driving) = builder.handshake(TokioIo::new(tcp)).await.map_err(io::Error::other)?;
    let deadline_timer = DeadlineTimer::new();
    Ok(Connection { sender, driving, is_over: false, worked: false, deadline_timer })
}

// === impl Http1Link ===

impl Link for Http1Link {
    fn dispatch(&self, dispatch: Dispatch) -> bool {
        self.0.try_send(dispatch).is_ok()
    }
}

// === impl Connection ===

impl Connection {
    /// Next request; `None` when the connection or the run has ended.
    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        dispatches: &mut mpsc::Receiver<Dispatch>,
    ) -> Poll<Option<Dispatch>> {
        self.drive(context);
        match self.is_over {
            true => Poll::Ready(None),
            false => dispatches.poll_recv(context),
        }
    }

    /// Sends one request and reads its response. True if the connection stays usable.
    async fn exchange(
        &mut self,
        connector: &Connector,
        connection: ConnectionId,
        dispatch: Dispatch,
    ) -> bool {
        let Dispatch { flight, request, deadline } = dispatch;
        let clock = connector.clock;
        self.deadline_timer.set(deadline.and_then(|at| clock.instant(at)));
        let sent = clock.now();
        let mut exchange = pin!(exchange(self.sender.try_send_request(request)));
        let outcome = poll_fn(|cx| self.poll_exchange(cx, exchange.as_mut())).await;
        let result = match outcome {
            Outcome::Answered(head) => Ok(head),
            Outcome::Failed(failure) => Err(failure),
            Outcome::NotWritten => {
                connector.report(Event::Returned { flight, worked: self.worked });
                return false;
            }
        };
        let is_answered = result.is_ok();
        self.worked |= is_answered;
        let at = clock.now();
        connector.report(Event::Ended(Ended { connection, flight, sent, at, result }));
        is_answered
    }

    fn poll_exchange(
        &mut self,
        context: &mut Context<'_>,
        mut exchange: Pin<&mut impl Future<Output = Outcome>>,
    ) -> Poll<Outcome> {
        // The first poll queues the request, driving writes it or reads the response, and the second poll sees the
        // result.
        for _ in 0..2 {
            if let Poll::Ready(outcome) = exchange.as_mut().poll(context) {
                return Poll::Ready(outcome);
            }
            self.drive(context);
        }
        self.deadline_timer.poll(context).map(|()| Outcome::Failed(Failure::Deadline))
    }

    /// Ready when it is known whether another request can follow.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        self.drive(context);
        match self.is_over {
            true => Poll::Ready(false),
            false => self.sender.poll_ready(context).map(|ready| ready.is_ok()),
        }
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        // The exchange reports an error, if there is one.
        if !self.is_over && Pin::new(&mut self.driving).poll(context).is_ready() {
            self.is_over = true;
        }
    }
}

// === impl DeadlineTimer ===

impl DeadlineTimer {
    fn new() -> Self {
        Self { timer: Box::pin(tokio::time::sleep_until(Instant::now())), until: None }
    }

    fn set(&mut self, until: Option<std::time::Instant>) {
        self.until = until.map(Instant::from_std);
        if let Some(until) = self.until
            && (self.timer.is_elapsed() || self.timer.deadline() > until)
        {
            self.timer.as_mut().reset(until);
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(until) = self.until else { return Poll::Pending };
        loop {
            std::task::ready!(self.timer.as_mut().poll(context));
            if self.timer.deadline() >= until {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(until);
        }
    }
}
