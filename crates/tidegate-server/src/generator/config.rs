use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use std::time::Duration;

/// How load is sent.
#[derive(Clone, Debug)]
pub struct GeneratorConfig {
    /// Where to: `http://host:port`. `https` is refused: it is not spoken.
    pub target: Uri,
    /// What is spoken.
    pub protocol: Protocol,
    /// Connections at once, at least 1. Over HTTP/1.1 that many requests are under way at most, over HTTP/2 as
    /// many times `streams_max`. Default 1,024.
    pub connections_max: usize,
    /// Over HTTP/2: requests at once on a connection, at least 1; fewer where the server allows fewer. Default
    /// 100.
    pub streams_max: usize,
    /// How long a connection may take to open. Default 5 s.
    pub connect_timeout: Duration,
    /// How long after the last due request answers are waited for. Default 10 s.
    pub grace: Duration,
    /// What is due within this is waited for awake. A thread that sleeps and is woken ten thousand times a second
    /// has little time for anything else, above all in a virtual machine. It costs up to one processor, so only
    /// who has one to spare should set it. Default 0: it always sleeps.
    pub awake_for: Duration,
}

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1 with one request at a time on a connection.
    Http1,
    /// HTTP/2 without a negotiation: the server is known to speak it.
    Http2,
}

/// What is sent: made once, used often.
#[derive(Clone, Debug)]
pub struct Template {
    /// The method.
    pub method: Method,
    /// The path, with its query if it has one.
    pub path: String,
    /// Headers; `host` and `content-length` are added.
    pub headers: HeaderMap,
    /// The body; a request without one is sent when it is empty.
    pub body: Bytes,
    /// How long a client waits for the whole answer, counted from when the request was due. Without it the client
    /// waits until the grace time is over.
    pub deadline: Option<Duration>,
}

// === impl GeneratorConfig ===

impl GeneratorConfig {
    /// The defaults, over HTTP/1.1.
    #[must_use]
    pub fn new(target: Uri) -> Self {
        Self {
            target,
            protocol: Protocol::Http1,
            connections_max: 1_024,
            streams_max: 100,
            connect_timeout: Duration::from_secs(5),
            grace: Duration::from_secs(10),
            awake_for: Duration::ZERO,
        }
    }
}

// === impl Template ===

impl Template {
    /// A GET of this path, without headers or a deadline.
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
