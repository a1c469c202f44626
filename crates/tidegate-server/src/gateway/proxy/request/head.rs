use super::hop_by_hop::{self, Coding};
use super::{ForwardedCache, Hop};
use crate::config::{AuthorizationPolicy, Config, HostPolicy, Orca, Scheme};
use crate::gateway::load::orca;
use crate::gateway::proxy::error::ProxyError;
use crate::http::client::Endpoint;
use crate::http::request::{has, values};
use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::uri::{self, Authority, PathAndQuery, Uri};
use http::{Method, Version};
use std::sync::Arc;

/// The head of a request on its way out, in a form that can be addressed to any upstream in turn.
pub struct OutgoingHead {
    path: PathAndQuery,
    host: HeaderValue,
    upgrade: Option<HeaderValue>,
    trailers: bool,
    /// The fields of this hop that are not in the head.
    hop: Option<Arc<Hop>>,
    /// The body's length is not known, which HTTP/1.1 must be told: a GET would lose its body otherwise.
    chunked: bool,
    /// Load was asked for in the client's name: what comes is not for it.
    hides_load: bool,
    /// Each upstream gets its own key, or none, instead of the client's `Authorization`.
    replaces_authorization: bool,
}

// === impl OutgoingHead ===

impl OutgoingHead {
    /// Takes the head apart: removes what was for this hop, and adds what tells the next one who asked.
    ///
    /// # Errors
    ///
    /// When the request has been here before, or can't be proxied at all.
    pub fn prepare(
        parts: &mut Parts,
        forwarded: &ForwardedCache,
        config: &Config,
        via: &HeaderValue,
        chunked: bool,
    ) -> Result<Self, ProxyError> {
        if parts.method == Method::CONNECT {
            return Err(ProxyError::ConnectMethod);
        }
        refuse_loop(&parts.headers, via)?;
        check_target(parts)?;
        let host = host_of(parts)?;
        let path = parts.uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        let stripped = hop_by_hop::strip(&mut parts.headers);
        if stripped.coding == Some(Coding::Other) {
            return Err(ProxyError::TransferCoding);
        }
        join_cookies(&mut parts.headers);
        let hop = forwarded.hop(&parts.headers, &host, config.proxy.forwarded, via);
        if hop.is_none() {
            forwarded.apply(&mut parts.headers, &host, config.proxy.forwarded);
            parts.headers.append(header::VIA, via.clone());
        }
        let (name, value) = orca::REQUEST_FORMAT;
        let hides_load = config.routing.orca == Orca::Ask && !has(&parts.headers, &name);
        if hides_load {
            parts.headers.insert(name, value);
        }
        let upgrade = stripped.upgrade.filter(|_| parts.version == Version::HTTP_11);
        let replaces_authorization = config.proxy.authorization == AuthorizationPolicy::Replace;
        let trailers = stripped.trailers;
        Ok(Self { path, host, upgrade, trailers, hop, chunked, hides_load, replaces_authorization })
    }

    /// Returns true if the client wants to switch protocols.
    pub fn wants_upgrade(&self) -> bool {
        self.upgrade.is_some()
    }

    /// Returns true if the client must not see the upstream's load header.
    pub fn hides_load(&self) -> bool {
        self.hides_load
    }

    /// Lines of further fields, for HTTP/1.1. None if an upstream of HTTP/2 was tried before: they are in the head
    /// then.
    pub fn lines(&self, headers: &HeaderMap) -> &[u8] {
        match &self.hop {
            Some(hop) if !has(headers, &header::VIA) => hop.lines(),
            _ => &[],
        }
    }

    /// Writes the target as the protocol spoken with the upstream has it. May be called again for another
    /// upstream.
    ///
    /// # Errors
    ///
    /// When path and authority make no URI, which those of an accepted request always do.
    pub fn address_uri(
        &self,
        uri: &mut Uri,
        endpoint: &Endpoint,
        h2: bool,
        policy: HostPolicy,
    ) -> Result<(), ProxyError> {
        if h2 {
            *uri = self.absolute(endpoint, policy)?;
        } else if uri.authority().is_some() {
            *uri = Uri::from(self.path.clone());
        }
        Ok(())
    }

    /// Writes the fields that depend on the upstream and on the protocol spoken with it. May be called again for
    /// another upstream.
    ///
    /// # Errors
    ///
    /// When the upstream's authority is no host.
    pub fn address_headers(
        &self,
        headers: &mut HeaderMap,
        endpoint: &Endpoint,
        h2: bool,
        policy: HostPolicy,
    ) -> Result<Version, ProxyError> {
        if h2 {
            if let Some(hop) = self.hop.as_ref().filter(|_| !has(headers, &header::VIA)) {
                hop.add_to(headers);
            }
            headers.remove(header::HOST);
            headers.remove(header::CONNECTION);
            headers.remove(header::TRANSFER_ENCODING);
        } else {
            // A request of HTTP/1.1 mostly has the host that it has to have.
            if policy != HostPolicy::Preserve || !has_only(headers, &self.host) {
                headers.insert(header::HOST, self.host_for(endpoint, policy)?);
            }
            if self.chunked {
                headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
            if let Some(protocol) = &self.upgrade {
                headers.insert(header::UPGRADE, protocol.clone());
                headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            } else if self.trailers {
                headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
            }
        }
        if self.replaces_authorization {
            match &endpoint.authorization {
                Some(key) => headers.insert(header::AUTHORIZATION, key.clone()),
                // That of another upstream, which was tried before, is not for this one.
                None => headers.remove(header::AUTHORIZATION),
            };
        }
        if self.trailers {
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
        }
        Ok(if h2 { Version::HTTP_2 } else { Version::HTTP_11 })
    }

    fn host_for(&self, endpoint: &Endpoint, policy: HostPolicy) -> Result<HeaderValue, ProxyError> {
        match policy {
            HostPolicy::Preserve => Ok(self.host.clone()),
            HostPolicy::Upstream => HeaderValue::from_str(endpoint.authority.as_str())
                .map_err(|_| ProxyError::BadTarget),
        }
    }

    fn absolute(&self, endpoint: &Endpoint, policy: HostPolicy) -> Result<Uri, ProxyError> {
        let authority = match policy {
            HostPolicy::Preserve if !self.host.is_empty() => {
                Authority::try_from(self.host.as_bytes()).map_err(|_| ProxyError::BadTarget)?
            }
            _ => endpoint.authority.clone(),
        };
        let scheme = match endpoint.scheme {
            Scheme::Https => uri::Scheme::HTTPS,
            Scheme::Http | Scheme::H2c => uri::Scheme::HTTP,
        };
        let mut parts = uri::Parts::default();
        parts.scheme = Some(scheme);
        parts.authority = Some(authority);
        parts.path_and_query = Some(self.path.clone());
        Uri::from_parts(parts).map_err(|_| ProxyError::BadTarget)
    }
}

/// Returns true if this is the host of a request already.
fn has_only(headers: &HeaderMap, host: &HeaderValue) -> bool {
    let mut hosts = values(headers, &header::HOST);
    hosts.next() == Some(host) && hosts.next().is_none()
}

/// HTTP/2 may cut a cookie into several fields, which HTTP/1.1 servers take for several cookies headers.
fn join_cookies(headers: &mut HeaderMap) {
    if !has(headers, &header::COOKIE) {
        return;
    }
    let fields = headers.get_all(header::COOKIE);
    if fields.iter().nth(1).is_none() {
        return;
    }
    let crumbs: Vec<&[u8]> = fields.iter().map(HeaderValue::as_bytes).collect();
    if let Ok(whole) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])) {
        headers.insert(header::COOKIE, whole);
    }
}

/// The host that was asked for: HTTP/2 has it in the target, HTTP/1.1 in a field. HTTP/1.1 without it, or
/// with two, is malformed; HTTP/1.0 may go without.
fn host_of(parts: &Parts) -> Result<HeaderValue, ProxyError> {
    if let Some(authority) = parts.uri.authority() {
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| ProxyError::BadTarget)?;
        return if is_host(&host) { Ok(host) } else { Err(ProxyError::BadTarget) };
    }
    let mut hosts = values(&parts.headers, &header::HOST);
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if is_host(host) => Ok(host.clone()),
        (None, _) if parts.version == Version::HTTP_10 => Ok(HeaderValue::from_static("")),
        _ => Err(ProxyError::BadHost),
    }
}

/// Returns true if a value is a host and port (RFC 3986). A name in front of an `@` is no part of it.
fn is_host(value: &HeaderValue) -> bool {
    value
        .as_bytes()
        .iter()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(byte))
}

/// A target that an HTTP server can be asked for: a path, a whole URI, or `*` of OPTIONS. A bare word is parsed as
/// an authority, which is the target of CONNECT alone.
fn check_target(parts: &Parts) -> Result<(), ProxyError> {
    let served = match parts.uri.scheme_str() {
        Some(scheme) => scheme == "http" || scheme == "https",
        None => parts.uri.authority().is_none(),
    };
    let whole_server = parts.uri.path() == "*";
    if served && (!whole_server || parts.method == Method::OPTIONS) {
        Ok(())
    } else {
        Err(ProxyError::BadTarget)
    }
}

/// A request that carries our own mark would go round for ever.
fn refuse_loop(headers: &HeaderMap, via: &HeaderValue) -> Result<(), ProxyError> {
    if !has(headers, &header::VIA) {
        return Ok(());
    }
    let mark = via.as_bytes();
    let came_by_here = headers
        .get_all(header::VIA)
        .iter()
        .any(|value| value.as_bytes().windows(mark.len()).any(|window| window == mark));
    if came_by_here { Err(ProxyError::Loop) } else { Ok(()) }
}
