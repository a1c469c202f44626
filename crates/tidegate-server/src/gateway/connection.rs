use super::client_io::ClientIo;
use super::{Activity, Phase, ThreadContext};
use crate::config::Config;
use crate::proxy::{ClientContext, serve};
use crate::telemetry::ThreadMetrics;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// Pings on an HTTP/2 connection, so that a client that vanished is noticed.
const H2_PING_EVERY: Duration = Duration::from_secs(20);

/// A connection of a client, just accepted.
pub struct Accepted {
    pub tcp: std::net::TcpStream,
    pub peer: SocketAddr,
    pub counted: Counted,
}

/// Closes a connection that only costs: one that says nothing, and one that takes nothing.
struct Watch {
    activity: Arc<Activity>,
    quiet_max: Duration,
    stall_max: Duration,
    stall: Option<(Instant, u64)>,
    asked_to_end: bool,
}

/// What to do with a connection now.
enum Verdict {
    Keep,
    /// Ask it to end; what is under way on it is finished.
    End,
    /// Drop it as it is.
    Cut,
}

/// Serves a client until one of both ends it.
pub async fn serve_client(
    thread: Arc<ThreadContext>,
    accepted: Accepted,
    tls: Option<TlsAcceptor>,
) {
    let _counted = accepted.counted;
    let activity = Arc::new(Activity::new());
    let peer = accepted.peer;
    let Ok(tcp) = TcpStream::from_std(accepted.tcp) else { return };
    let io = ClientIo::new(tcp, Arc::clone(&activity));
    let limit = thread.shared.config.listen.header_timeout;
    let client = Arc::new(ClientContext::new(thread, peer, tls.is_some(), activity));
    match tls {
        None => serve_http(client, io).await,
        Some(tls) => match timeout(limit, tls.accept(io)).await {
            Ok(Ok(stream)) => serve_http(client, stream).await,
            Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
            Err(_elapsed) => tracing::debug!(%peer, "TLS handshake timed out"),
        },
    }
}

async fn serve_http<S>(client: Arc<ClientContext>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shared = &client.thread.shared;
    let mut phase = shared.phase.clone();
    let mut watch = Watch::new(&client.activity, &shared.config);
    let builder = http_builder();
    let service = {
        let client = Arc::clone(&client);
        service_fn(move |request| serve(Arc::clone(&client), request))
    };
    let mut connection =
        pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let mut tick = pin!(sleep(watch.period()));
    let mut draining = false;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(peer = %client.peer, %error, "client connection ended");
                }
                return;
            }
            () = tick.as_mut() => {
                match watch.look() {
                    Verdict::Keep => {}
                    Verdict::End => connection.as_mut().graceful_shutdown(),
                    Verdict::Cut => return,
                }
                tick.as_mut().reset(tokio::time::Instant::now() + watch.period());
            }
            _ = phase.wait_for(|phase| *phase == Phase::Draining), if !draining => {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// HTTP/1.1, or HTTP/2 with prior knowledge; under TLS the client's first bytes tell as well.
fn http_builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Answers are mostly small, and one flat write costs less than gathering two pieces does.
    // Quiet connections are closed by `Watch`, which needs no timer a request as hyper's own would.
    builder.http1().header_read_timeout(None).pipeline_flush(true).writev(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(H2_PING_EVERY)
        .adaptive_window(true)
        .max_concurrent_streams(1024);
    builder
}

// === impl Watch ===

impl Watch {
    fn new(activity: &Arc<Activity>, config: &Config) -> Self {
        Self {
            activity: Arc::clone(activity),
            quiet_max: config.listen.header_timeout,
            stall_max: config.proxy.stream_idle_timeout,
            stall: None,
            asked_to_end: false,
        }
    }

    /// Often enough to be right within a quarter.
    fn period(&self) -> Duration {
        self.quiet_max.min(self.stall_max) / 4
    }

    fn look(&mut self) -> Verdict {
        match self.activity.quiet_for() {
            Some(quiet) if quiet < self.quiet_max => {
                self.asked_to_end = false;
                Verdict::Keep
            }
            // Half a request is not under way, so a client that never finishes its head is asked, then cut.
            Some(_) if self.asked_to_end => Verdict::Cut,
            Some(_) => {
                self.asked_to_end = true;
                Verdict::End
            }
            None => self.look_at_writes(),
        }
    }

    fn look_at_writes(&mut self) -> Verdict {
        let (written, blocked) = self.activity.written();
        match self.stall {
            _ if !blocked => self.stall = None,
            Some((since, before)) if before == written => {
                if since.elapsed() >= self.stall_max {
                    return Verdict::Cut;
                }
            }
            _ => self.stall = Some((Instant::now(), written)),
        }
        Verdict::Keep
    }
}

/// Keeps the count of a thread's connections right, from the moment it is chosen and however they end.
pub struct Counted(Arc<ThreadMetrics>);

impl Counted {
    pub fn new(metrics: &Arc<ThreadMetrics>) -> Self {
        metrics.connected();
        Self(Arc::clone(metrics))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.disconnected();
    }
}
