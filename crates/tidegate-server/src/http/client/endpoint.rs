use crate::config::{ApiKey, Scheme, UpstreamTarget};
use http::HeaderValue;
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
    /// The `Authorization` of requests to it, if it has a key of its own.
    pub authorization: Option<HeaderValue>,
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
            authorization: target.api_key.as_ref().and_then(bearer),
        })
    }
}

/// A field that is marked as sensitive: neither printed nor put into the index of an HTTP/2 connection.
pub(crate) fn bearer(key: &ApiKey) -> Option<HeaderValue> {
    // A key of visible ASCII always is a value.
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok()?;
    value.set_sensitive(true);
    Some(value)
}
