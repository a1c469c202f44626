use super::choice::{self, Choice, choices};
use super::limit::LimitSetting;
use super::secret::ApiKey;
use crate::config::errors::quoted;
use std::net::Ipv6Addr;
use tidegate::limit::LimitGoal;
use tidegate::suggestion::nearest;

const IPV6: &str = "an IPv6 address in brackets, such as [::1]:9001";

/// A server that requests are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTarget {
    /// Host and port as in a URL, `127.0.0.1:9001` or `[::1]:9001`; the upstream's name in logs and metrics.
    pub name: String,
    /// Protocol of the upstream.
    pub scheme: Scheme,
    /// Name or address in lower case; an IPv6 address without brackets.
    pub host: String,
    /// Port, 1 … 65,535. Default 80, for https 443.
    pub port: u16,
    /// Models that it serves. Default unknown: those that the upstream lists, or any.
    pub models: Option<Vec<String>>,
    /// The most requests at it at once. Default that of `[routing]`.
    pub limit: Option<LimitSetting>,
    /// Goal of its limit if that is found. Default that of `[routing]`.
    pub limit_preset: Option<LimitGoal>,
    /// Key that its requests carry with `proxy.authorization = "replace"`. Default none.
    pub api_key: Option<ApiKey>,
}

/// Protocol of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP/1.1 in plain text; gRPC by HTTP/2 with prior knowledge.
    Http,
    /// HTTP/2 in plain text, with prior knowledge.
    H2c,
    /// TLS; the version of HTTP by ALPN.
    Https,
}

/// The problem of a text that is no URL of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlError {
    pub(crate) allowed: &'static str,
    pub(crate) suggestion: Option<String>,
}

// === impl UpstreamTarget ===

impl UpstreamTarget {
    pub(crate) const SHAPE: &str = "scheme://host:port with scheme http, h2c or https";

    /// Parses a URL. A part that would not be used, such as a path, is an error.
    pub(crate) fn parse(url: &str) -> Result<Self, UrlError> {
        let Some((scheme, rest)) = url.split_once("://") else {
            let guess = format!("http://{url}");
            let is_url = !url.contains('@') && Self::parse(&guess).is_ok();
            return Err(UrlError {
                allowed: Self::SHAPE,
                suggestion: is_url.then(|| quoted(&guess)),
            });
        };
        let scheme = Scheme::parse(scheme)?;
        let (host, port) = host_and_port(authority(rest)?)?;
        let port = match port {
            Some(port) => parse_port(port).ok_or("a port of 1 … 65535")?,
            None if scheme == Scheme::Https => 443,
            None => 80,
        };
        let is_ipv6 = host.contains(':');
        let name = if is_ipv6 { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let (models, limit, limit_preset, api_key) = (None, None, None, None);
        Ok(Self { name, scheme, host, port, models, limit, limit_preset, api_key })
    }

    /// The URL of the upstream.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme.name(), self.name)
    }
}

// === impl Scheme ===

choices! { Scheme { "http" Self::Http, "h2c" Self::H2c, "https" Self::Https } }

impl Scheme {
    /// The name as in a URL.
    #[must_use]
    pub fn name(self) -> &'static str {
        choice::name_of(self)
    }

    fn parse(name: &str) -> Result<Self, UrlError> {
        choice::from_name(&name.to_ascii_lowercase()).ok_or_else(|| UrlError {
            allowed: "a scheme of http, h2c or https",
            suggestion: nearest(name, Self::NAMES.iter().copied()).map(quoted),
        })
    }
}

// === impl UrlError ===

impl From<&'static str> for UrlError {
    fn from(allowed: &'static str) -> Self {
        Self { allowed, suggestion: None }
    }
}

/// The part between scheme and path, if nothing follows it.
fn authority(rest: &str) -> Result<&str, &'static str> {
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    match tail {
        _ if authority.contains('@') => Err("no user or password in the URL"),
        "" | "/" => Ok(authority),
        _ if tail.starts_with('/') => Err("no path: requests keep the one they came with"),
        _ => Err("no query or fragment: requests keep their own"),
    }
}

fn host_and_port(authority: &str) -> Result<(String, Option<&str>), &'static str> {
    if let Some((host, tail)) = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let host = host.parse::<Ipv6Addr>().map_err(|_| IPV6)?.to_string();
        return match tail.strip_prefix(':') {
            None if !tail.is_empty() => Err(IPV6),
            port => Ok((host, port)),
        };
    }
    let host = authority.split(':').next().unwrap_or_default();
    let port = authority.strip_prefix(host).and_then(|rest| rest.strip_prefix(':'));
    if authority.starts_with('[') || port.is_some_and(|port| port.contains(':')) {
        return Err(IPV6);
    }
    // Container networks use underscores. The longest name of DNS has 253 characters.
    let is_host = (1..=253).contains(&host.len())
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
        && host.bytes().any(|b| b.is_ascii_alphanumeric());
    let host = is_host.then(|| host.to_ascii_lowercase());
    Ok((host.ok_or("a host name or an IP address after the scheme")?, port))
}

fn parse_port(port: &str) -> Option<u16> {
    let is_number = port.bytes().all(|b| b.is_ascii_digit());
    port.parse().ok().filter(|port| is_number && *port != 0)
}
