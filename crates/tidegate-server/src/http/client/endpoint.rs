use crate::config::{Scheme, UpstreamTarget};
use http::uri::{Authority, InvalidUri};

/// A server that requests are sent to.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The endpoint's index in its pool.
    pub index: usize,
    /// `host:port`, as labels and messages show it.
    pub name: String,
    /// The scheme of its URL.
    pub scheme: Scheme,
    /// The host, to be resolved.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The `:authority` or, when so configured, the `Host` of requests to it.
    pub authority: Authority,
}

// === impl Endpoint ===

impl Endpoint {
    /// The endpoint of a configured target, at this index of its pool.
    ///
    /// # Errors
    ///
    /// When its name can't stand in a URL.
    pub fn new(index: usize, target: &UpstreamTarget) -> Result<Self, InvalidUri> {
        Ok(Self {
            index,
            name: target.name.clone(),
            scheme: target.scheme,
            host: target.host.clone(),
            port: target.port,
            authority: target.name.parse()?,
        })
    }
}
