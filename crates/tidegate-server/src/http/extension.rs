use super::admission::Admission;
use super::error_response::RejectionPolicy;
use super::{Exposition, Phase, ResponseBody};
use http::{Request, Response};
use hyper::body::Incoming;
use serde_json::Value;
use std::fmt;
use std::pin::Pin;
use tokio::sync::watch;

/// A part of the node that answers paths and adds to snapshots on the ports of another part.
pub trait Extension: Send + Sync {
    /// Returns true if this part answers requests to this path.
    fn owns(&self, path: &str) -> bool;

    /// Answers a request to one of its paths.
    fn answer<'a>(&'a self, request: Request<Incoming>, caller: Caller<'a>) -> Answer<'a>;

    /// A section of the statistics: its name and its content.
    fn stats(&self) -> Option<(&'static str, Value)> {
        None
    }

    /// A field of the readiness check, which does not decide its outcome.
    fn readiness(&self) -> Option<(&'static str, Value)> {
        None
    }

    /// Writes the series of this part.
    fn write_metrics(&self, _out: &mut Exposition) {}
}

/// The response of an [`Extension`], to come.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send + 'a>>;

/// The circumstances of a request that an [`Extension`] answers.
#[derive(Debug)]
pub struct Caller<'a> {
    /// Admission of requests.
    pub admission: &'a Admission,
    /// Settings of responses to refused requests.
    pub policy: RejectionPolicy,
    /// The phase of the process that serves the port.
    pub phase: watch::Receiver<Phase>,
    /// The port that the request came in by.
    pub port: Port,
}

/// A port of a node.
#[derive(Debug)]
pub enum Port {
    /// The clients' port.
    Clients(InUse),
    /// The operators' port, whose requests are Critical, except for work.
    Operators,
}

/// Keeps a client's connection from counting as quiet until it is dropped.
pub struct InUse {
    _guard: Box<dyn Send + Sync>,
}

// === impl InUse ===

impl InUse {
    /// A connection that is in use as long as this guard lives.
    #[must_use]
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self { _guard: Box::new(guard) }
    }
}

impl fmt::Debug for InUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InUse")
    }
}
