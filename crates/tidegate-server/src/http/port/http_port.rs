use super::accept_errors::AcceptErrors;
use super::connections::{Connections, Listed, Stage};
use super::spare_descriptors::SpareDescriptors;
use crate::http::ResponseBody;
use crate::http::date::DateStamp;
use crate::http::tls::{PeerCertificate, TlsPort};
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// Connections of an admin port: enough for every scraper and operator.
const OPERATORS_MAX: u32 = 256;

/// The longest silence of an operator's connection. Operators come when things go wrong: forgotten connections
/// must make room for them sooner than those of slow clients.
const OPERATOR_SILENCE_MAX: Duration = Duration::from_secs(5);

/// An HTTP port that one thread serves: the accept loop, its connections and their end.
#[derive(Debug)]
pub struct HttpPort {
    name: &'static str,
    connections_max: u32,
    connections: Arc<Connections>,
    silence_max: Duration,
    ping_every: Duration,
    slots: Arc<Semaphore>,
    closing: watch::Sender<bool>,
    tls: Option<Arc<TlsPort>>,
}

/// A connection that is about to be served.
struct Serving {
    name: &'static str,
    builder: auto::Builder<TokioExecutor>,
    silence_max: Duration,
    listed: Listed,
    closing: watch::Receiver<bool>,
    certificate: Option<PeerCertificate>,
}

// === impl HttpPort ===

impl HttpPort {
    /// A port with this name in logs. Beyond `connections_max`, each new connection ends the one that has waited
    /// longest for a request or its body, so that nobody can fill the port by saying nothing. A quarter more are
    /// served while all are being answered, and further ones wait in the system's backlog. A connection without a
    /// request for `silence_max` is closed.
    #[must_use]
    pub fn new(name: &'static str, connections_max: u32, silence_max: Duration) -> Self {
        let slots = Arc::new(Semaphore::new(slots_of(connections_max) as usize));
        let (closing, ping_every) = (watch::channel(false).0, silence_max);
        let connections = Arc::new(Connections::default());
        let tls = None;
        Self { name, connections_max, connections, silence_max, ping_every, slots, closing, tls }
    }

    /// An admin port, whose connections may be silent for 5 s, or for the timeout of heads where that is shorter.
    #[must_use]
    pub fn admin(header_timeout: Duration) -> Self {
        Self::new("admin", OPERATORS_MAX, header_timeout.min(OPERATOR_SILENCE_MAX))
    }

    /// Pings HTTP/2 connections at this interval, and closes those that do not answer within it.
    #[must_use]
    pub fn ping_every(self, interval: Duration) -> Self {
        Self { ping_every: interval, ..self }
    }

    /// Serves over TLS, if there is any.
    #[must_use]
    pub(crate) fn tls(self, tls: Option<Arc<TlsPort>>) -> Self {
        Self { tls, ..self }
    }

    /// Accepts connections and answers their requests, for ever.
    pub async fn serve<A, F>(&self, listener: TcpListener, answer: A)
    where
        A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Response<ResponseBody>> + Send + 'static,
    {
        let mut errors = AcceptErrors::new(self.name);
        let mut spare = SpareDescriptors::new();
        loop {
            // The semaphore is never closed, so this waits for a slot and never fails.
            let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((tcp, _)) => {
                    let now = std::time::Instant::now();
                    let listed = spare.list_if_last(now).unwrap_or_else(|| self.list(now));
                    let connection = self.serve_connection(tcp, listed, answer.clone());
                    tokio::spawn(async move {
                        connection.await;
                        drop(slot);
                    });
                }
                // Nothing else may have the descriptor in between: the next accept follows at once.
                Err(error) if SpareDescriptors::are_needed_for(&error) && spare.release() => {
                    errors.note(&error);
                }
                Err(error) if SpareDescriptors::are_needed_for(&error) => {
                    errors.pause_for_room(&error).await;
                    spare.refill();
                }
                Err(error) => errors.pause_after(&error).await,
            }
        }
    }

    /// Ends every connection after its current response, and waits at most this long for that.
    pub async fn close(&self, wait_max: Duration) {
        self.closing.send_replace(true);
        let _ = timeout(wait_max, self.slots.acquire_many(slots_of(self.connections_max))).await;
    }

    fn serve_connection<A, F>(
        &self,
        tcp: TcpStream,
        listed: Listed,
        answer: A,
    ) -> impl Future<Output = ()> + Send + 'static
    where
        A: Fn(Request<Incoming>) -> F + Send + 'static,
        F: Future<Output = Response<ResponseBody>> + Send + 'static,
    {
        let _ = tcp.set_nodelay(true);
        let mut serving = Serving {
            name: self.name,
            builder: self.builder(),
            silence_max: self.silence_max,
            listed,
            closing: self.closing.subscribe(),
            certificate: None,
        };
        let tls = self.tls.clone();
        async move {
            let Some(tls) = tls else { return serving.serve(tcp, answer).await };
            let shaken = tokio::select! {
                shaken = tls.accept(tcp, serving.silence_max) => shaken,
                () = serving.listed.connection().evicted() => None,
            };
            if let Some(stream) = shaken {
                serving.certificate = PeerCertificate::of(stream.get_ref().1);
                serving.serve(stream, answer).await;
            }
        }
    }

    fn list(&self, now: std::time::Instant) -> Listed {
        self.connections.list(self.connections_max as usize, now)
    }

    fn builder(&self) -> auto::Builder<TokioExecutor> {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(self.silence_max)
            .auto_date_header(false);
        // A peer that answers nothing would not let its connection be shut down either.
        builder
            .http2()
            .auto_date_header(false)
            .timer(TokioTimer::new())
            .keep_alive_interval(self.ping_every)
            .keep_alive_timeout(self.ping_every);
        builder
    }
}

// === impl Serving ===

impl Serving {
    /// Answers the requests of a connection until it ends, is silent for too long, or has to make room.
    async fn serve<S, A, F>(self, stream: S, answer: A)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        A: Fn(Request<Incoming>) -> F + Send + 'static,
        F: Future<Output = Response<ResponseBody>> + Send + 'static,
    {
        let Self { name, builder, silence_max, listed, mut closing, certificate } = self;
        let last_request = Arc::new(Mutex::new(Instant::now()));
        let seen = Arc::clone(&last_request);
        let open = Arc::clone(listed.connection());
        let service = service_fn(move |mut request: Request<Incoming>| {
            if let Some(certificate) = &certificate {
                request.extensions_mut().insert(certificate.clone());
            }
            let now = Instant::now();
            *seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
            let whole = request.body().is_end_stream();
            let stage = if whole { Stage::Answering } else { Stage::Receiving };
            open.reach(stage, now.into_std());
            let (open, response) = (Arc::clone(&open), answer(request));
            async move {
                let mut response = response.await;
                DateStamp::new(SystemTime::now()).stamp(response.headers_mut());
                let streams = response.body().size_hint().exact().is_none();
                let stage = if streams { Stage::Answering } else { Stage::Waiting };
                open.reach(stage, Instant::now().into_std());
                Ok::<_, Infallible>(response)
            }
        });
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = listed.connection().evicted() => return,
            // A response under way, a stream of events too, is still sent to its end.
            () = silence(&last_request, silence_max) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            // Also when the port is dropped.
            () = closed(&mut closing) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, port = name, "a connection ended");
        }
    }
}

/// All slots of a port: a quarter more than the connections from which on one makes room for another.
const fn slots_of(connections_max: u32) -> u32 {
    connections_max + connections_max.div_ceil(4)
}

async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

/// Waits until no request came for this long. The timeout for heads alone does not see a connection that has not
/// sent a byte, because its protocol is not known yet.
async fn silence(last_request: &Mutex<Instant>, longest: Duration) {
    loop {
        let until = *last_request.lock().unwrap_or_else(PoisonError::into_inner) + longest;
        if Instant::now() >= until {
            return;
        }
        sleep_until(until).await;
    }
}
