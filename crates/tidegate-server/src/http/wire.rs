//! Socket options of connections to clients and to upstreams.

use std::io;
use std::time::Duration;
use tokio::net::TcpStream;

/// Pings on an HTTP/2 connection, so that a peer that vanished is noticed.
pub const H2_PING_EVERY: Duration = Duration::from_secs(20);

/// Bytes that a client's connection of HTTP/1.1 buffers in each direction, and so the longest head of a request.
pub const CLIENT_BUFFER_MAX: usize = 64 * 1024;

/// The same of an upstream's: the longest head of a response, and the most that is read of its body at once.
pub const UPSTREAM_BUFFER_MAX: usize = 32 * 1024;

/// Memory of a client's connection and its upstream's, without what waits for the client: buffers for heads, and
/// the state of both.
pub const CONNECTION_BYTES: usize = 32 * 1024;

/// Bytes of a response that an HTTP/2 upstream may send ahead of its client. Twice the segment of loopback: an
/// upstream that batches small writes waits for an acknowledgement, up to 40 ms, when the window holds no whole
/// segment more.
pub const H2_STREAM_WINDOW: u32 = 128 * 1024;

/// The same of all responses of a connection: no bound, or a few clients that do not read would stop the responses
/// of all others. The largest window of RFC 9113.
pub const H2_CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// Bytes of a stream of HTTP/2 that wait for the socket: two frames.
pub const H2_SEND_MAX: usize = 32 * 1024;

/// Bytes that TLS buffers for a socket: two records.
pub const TLS_BUFFER_MAX: usize = 32 * 1024;

/// Small writes go out at once, and a peer that vanished without a word is noticed: it would otherwise hold its
/// connection, and a tunnel its permit.
///
/// # Errors
///
/// When the socket is gone already.
pub fn prepare(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let probes = socket2::TcpKeepalive::new()
        .with_time(Duration::from_secs(60))
        .with_interval(Duration::from_secs(15));
    socket2::SockRef::from(tcp).set_tcp_keepalive(&probes)
}
