use super::client_io::ClientIo;
use crate::gateway::activity::{Activity, Order};
use crate::gateway::proxy::{ClientContext, ThreadProxy, serve};
use crate::gateway::reserve::ReservedConnection;
use crate::gateway::telemetry::ThreadMetrics;
use crate::http::tls::{PeerCertificate, TlsPort};
use crate::http::wire::{CLIENT_BUFFER_MAX, H2_PING_EVERY, H2_SEND_MAX};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// A connection of a client, just accepted.
pub struct Accepted {
    pub tcp: std::net::TcpStream,
    pub peer: SocketAddr,
    pub counted: CountedConnection,
    /// Its part of the reserve, beyond the connection limit.
    pub reserved: Option<ReservedConnection>,
}

/// Serves a client until one of both ends it, or until it has to make room in the reserve.
pub async fn serve_client(
    thread: Arc<ThreadProxy>,
    accepted: Accepted,
    activity: Arc<Activity>,
    tls: Option<Arc<TlsPort>>,
) {
    let Accepted { tcp, peer, counted: _counted, reserved } = accepted;
    let reserved = reserved.map(Arc::new);
    let served = serve_tcp(thread, (tcp, peer), reserved.clone(), activity, tls);
    match reserved {
        None => served.await,
        Some(reserved) => tokio::select! {
            () = served => {}
            () = reserved.ended() => {}
        },
    }
}

async fn serve_tcp(
    thread: Arc<ThreadProxy>,
    (tcp, peer): (std::net::TcpStream, SocketAddr),
    reserved: Option<Arc<ReservedConnection>>,
    activity: Arc<Activity>,
    tls: Option<Arc<TlsPort>>,
) {
    let Ok(tcp) = TcpStream::from_std(tcp) else { return };
    let io = ClientIo::new(tcp, Arc::clone(&activity), tls.is_none());
    let limit = thread.header_timeout();
    let client = ClientContext::new(thread, peer, tls.is_some(), Arc::clone(&activity));
    let client = client.reserved(reserved);
    match tls {
        None => serve_http(Arc::new(client), io, peer, &activity, true).await,
        // Boxed: a plain connection would otherwise hold the memory of a handshake too.
        Some(tls) => Box::pin(serve_tls(client, &tls, (io, peer), limit, &activity)).await,
    }
    if let Some(tunnel) = activity.take_tunnel() {
        follow(tunnel, &activity).await;
    }
}

async fn serve_tls(
    client: ClientContext,
    tls: &TlsPort,
    (io, peer): (ClientIo, SocketAddr),
    limit: Duration,
    activity: &Activity,
) {
    let Some(stream) = tls.accept(io, limit).await else { return };
    let client = client.certified(PeerCertificate::of(stream.get_ref().1));
    serve_http(Arc::new(client), stream, peer, activity, false).await;
}

/// Stays with a connection that goes on as a tunnel, so that it is counted, drained and cut like any other.
async fn follow(mut tunnel: JoinHandle<()>, activity: &Activity) {
    poll_fn(|cx| {
        if activity.order() == Order::Cut {
            tunnel.abort();
        }
        Pin::new(&mut tunnel).poll(cx).map(drop)
    })
    .await;
}

async fn serve_http<S>(
    client: Arc<ClientContext>,
    stream: S,
    peer: SocketAddr,
    activity: &Activity,
    half_close: bool,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let builder = http_builder(half_close);
    let service = service_fn(move |request| serve(Arc::clone(&client), request));
    let mut connection =
        pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let (mut listening, mut ending) = (false, false);
    let ended = poll_fn(|cx| {
        if !listening {
            activity.wake_on_order(cx.waker());
            listening = true;
        }
        match activity.order() {
            Order::Go => {}
            Order::End if ending => {}
            Order::End => {
                connection.as_mut().graceful_shutdown();
                ending = true;
            }
            Order::Cut => return Poll::Ready(Ok(())),
        }
        connection.as_mut().poll(cx)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%peer, %error, "client connection ended");
    }
}

/// HTTP/1.1, or HTTP/2 with prior knowledge; under TLS the client's first bytes tell as well.
///
/// With `half_close`, [`ClientIo`] notices clients that are gone, and the HTTP server does not.
fn http_builder(half_close: bool) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Answers are mostly small, and one flat write costs less than gathering two pieces does.
    // Quiet connections are closed by `ConnectionReaper`, which needs no timer a request as hyper's own would.
    builder
        .http1()
        .header_read_timeout(None)
        .writev(false)
        .half_close(half_close)
        .max_buf_size(CLIENT_BUFFER_MAX)
        .auto_date_header(false);
    builder
        .http2()
        .timer(TokioTimer::new())
        .auto_date_header(false)
        .keep_alive_interval(H2_PING_EVERY)
        .adaptive_window(true)
        .max_send_buf_size(H2_SEND_MAX)
        .max_concurrent_streams(1024);
    builder
}

/// Keeps the count of a thread's connections right, from the moment it is chosen and however they end.
pub struct CountedConnection(Arc<ThreadMetrics>);

impl CountedConnection {
    pub fn new(metrics: &Arc<ThreadMetrics>) -> Self {
        metrics.connected();
        Self(Arc::clone(metrics))
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.disconnected();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size_of_connection<A, B, C, D, F>(_: fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    fn size_of_request<A, B, F>(_: fn(A, B) -> F) -> usize {
        size_of::<F>()
    }

    /// A connection holds both for as long as it is open. With the state of TLS handshakes they were 26 KiB.
    #[test]
    fn a_connection_and_its_requests_hold_little() {
        let (connection, request) = (size_of_connection(serve_client), size_of_request(serve));
        assert!(connection + request <= 10 * 1024, "{connection} and {request} bytes");
    }
}
