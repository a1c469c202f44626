//! A connection over HTTP/1.1: one task, which drives the connection and its one exchange together, so that a
//! request is written in the same poll in which it arrives.

use super::connect::Connector;
use super::driver::Failure;
use super::event::{ConnectionId, Departure, Ended, Event, Link, Opened};
use super::exchange::{Outcome, exchange};
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

/// How much of an answer is read at once, at most. A head that is longer is nonsense.
const READ_BUFFER: usize = 64 * 1024;

struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driving: Driving,
    /// `driving` came to its end, and must not be polled again.
    is_over: bool,
    /// An answer came.
    worked: bool,
    patience: Patience,
}

/// When the client gives up. The timer is moved only when it goes off too early or too late for the present
/// request: otherwise each one would take it out of the runtime's wheel and put it back.
struct Patience {
    timer: Pin<Box<Sleep>>,
    until: Option<Instant>,
}

/// Opens a connection, and takes requests until it ends.
pub(super) async fn connection(connector: Connector, id: ConnectionId) {
    let begin = connector.clock.now();
    let mut connection = match open(&connector).await {
        Ok(connection) => connection,
        Err(error) => return connector.tell(Event::NotOpened(error)),
    };
    let (link, mut departures) = mpsc::channel(1);
    let took = connector.clock.now() - begin;
    connector.tell(Event::Opened(Opened { id, link: Link::Http1(link), room: 1, took }));
    while let Some(departure) = poll_fn(|cx| connection.poll_next(cx, &mut departures)).await {
        let goes_on = connection.exchange(&connector, id, departure).await;
        if !goes_on || !poll_fn(|cx| connection.poll_ready(cx)).await {
            break;
        }
        connector.tell(Event::Free(id));
    }
    departures.close();
    while let Ok(Departure { flight, .. }) = departures.try_recv() {
        connector.tell(Event::Returned { flight, worked: connection.worked });
    }
    connector.tell(Event::Closed(id));
}

async fn open(connector: &Connector) -> io::Result<Connection> {
    let tcp = connector.connect().await?;
    let mut builder = http1::Builder::new();
    builder.max_buf_size(READ_BUFFER);
    let (sender, driving) = builder.handshake(TokioIo::new(tcp)).await.map_err(io::Error::other)?;
    let patience = Patience::new();
    Ok(Connection { sender, driving, is_over: false, worked: false, patience })
}

// === impl Connection ===

impl Connection {
    /// The next request; none when the connection or the run has ended.
    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        departures: &mut mpsc::Receiver<Departure>,
    ) -> Poll<Option<Departure>> {
        self.drive(context);
        match self.is_over {
            true => Poll::Ready(None),
            false => departures.poll_recv(context),
        }
    }

    /// Sends one request and reads its answer. Whether the connection can go on.
    async fn exchange(
        &mut self,
        connector: &Connector,
        connection: ConnectionId,
        departure: Departure,
    ) -> bool {
        let Departure { flight, request, deadline } = departure;
        let clock = connector.clock;
        self.patience.set(deadline.and_then(|at| clock.instant(at)));
        let sent = clock.now();
        let mut exchange = pin!(exchange(self.sender.try_send_request(request)));
        let outcome = poll_fn(|cx| self.poll_exchange(cx, exchange.as_mut())).await;
        let result = match outcome {
            Outcome::Answered(head) => Ok(head),
            Outcome::Failed(failure) => Err(failure),
            Outcome::NotWritten => {
                connector.tell(Event::Returned { flight, worked: self.worked });
                return false;
            }
        };
        let is_answered = result.is_ok();
        self.worked |= is_answered;
        let at = clock.now();
        connector.tell(Event::Ended(Ended { connection, flight, sent, at, result }));
        is_answered
    }

    fn poll_exchange(
        &mut self,
        context: &mut Context<'_>,
        mut exchange: Pin<&mut impl Future<Output = Outcome>>,
    ) -> Poll<Outcome> {
        // The first look queues the request, driving writes it or reads of the answer, and the second look sees
        // that.
        for _ in 0..2 {
            if let Poll::Ready(outcome) = exchange.as_mut().poll(context) {
                return Poll::Ready(outcome);
            }
            self.drive(context);
        }
        self.patience.poll(context).map(|()| Outcome::Failed(Failure::Deadline))
    }

    /// Whether another request can follow: ready when that is known.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        self.drive(context);
        match self.is_over {
            true => Poll::Ready(false),
            false => self.sender.poll_ready(context).map(|ready| ready.is_ok()),
        }
    }

    fn drive(&mut self, context: &mut Context<'_>) {
        // How it ended is told by the exchange, if there is one.
        if !self.is_over && Pin::new(&mut self.driving).poll(context).is_ready() {
            self.is_over = true;
        }
    }
}

// === impl Patience ===

impl Patience {
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
