use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use std::time::Duration;

/// Configuration of the generator.
#[derive(Clone, Debug)]
pub struct GeneratorConfig {
    /// URL of the target, `http://host:port`; `https` is not supported.
    pub target: Uri,
    /// HTTP version.
    pub protocol: Protocol,
    /// Limit of connections, at least 1. It also limits requests in flight: HTTP/1.1 has one per connection,
    /// HTTP/2 `streams_max`. Default 1,024.
    pub connections_max: usize,
    /// Limit of streams per HTTP/2 connection, at least 1; the server may set a lower one. Default 100.
    pub streams_max: usize,
    /// Timeout of opening a connection. Default 5 s.
    pub connect_timeout: Duration,
    /// Wait for responses after the last due request. Default 10 s.
    pub grace: Duration,
    /// Busy-waits when the next send is nearer than this. Sleeping and waking ten thousand times a second leaves
    /// little CPU time, above all in a virtual machine. Busy-waiting uses up to one CPU. Default 0: always sleeps.
    pub busy_wait: Duration,
}

/// HTTP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, one request at a time on a connection.
    Http1,
    /// HTTP/2 with prior knowledge.
    Http2,
}

/// Template of requests.
#[derive(Clone, Debug)]
pub struct Template {
    /// Method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Headers; `host` and `content-length` are added.
    pub headers: HeaderMap,
    /// Body; may be empty.
    pub body: Bytes,
    /// Time from due until the whole response must have arrived. Without it the end of the grace time counts.
    pub deadline: Option<Duration>,
}

// === impl GeneratorConfig ===

impl GeneratorConfig {
    /// Defaults with HTTP/1.1.
    #[must_use]
    pub fn new(target: Uri) -> Self {
        Self {
            target,
            protocol: Protocol::Http1,
            connections_max: 1_024,
            streams_max: 100,
            connect_timeout: Duration::from_secs(5),
            grace: Duration::from_secs(10),
            busy_wait: Duration::ZERO,
        }
    }
}

// === impl Template ===

impl Template {
    /// GET of this path, without headers or deadline.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            deadline: None,
        }
    }
}
