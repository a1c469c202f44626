use super::mistakes::{nearest, quoted};
use std::net::Ipv6Addr;

/// What an upstream looks like, in words.
pub(super) const SHAPE: &str = "scheme://host:port with scheme http, h2c or https";

/// A server that requests are passed on to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTarget {
    /// Host and port as they stand in a URL, `127.0.0.1:9001` or `[::1]:9001`; unique, and the upstream's name
    /// in logs and metrics.
    pub name: String,
    /// How to speak to it.
    pub scheme: Scheme,
    /// Name or address in lower case; of an IPv6 address without brackets.
    pub host: String,
    /// 1 … 65,535. Default 80, for https 443.
    pub port: u16,
    /// The models it serves. Default unknown: what it says itself, or any.
    pub models: Option<Vec<String>>,
}

/// How to speak to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP/1.1 in plain text; gRPC by HTTP/2 with prior knowledge.
    Http,
    /// HTTP/2 in plain text, with prior knowledge.
    H2c,
    /// TLS; the version of HTTP by ALPN.
    Https,
}

/// Why a text is no upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoUpstream {
    pub(crate) allowed: &'static str,
    pub(crate) suggestion: Option<String>,
}

// === impl UpstreamTarget ===

impl UpstreamTarget {
    /// Strict where URLs are lenient: what is not used, such as a path, must not be there, or somebody would
    /// believe that it is.
    pub(crate) fn parse(url: &str) -> Result<Self, NoUpstream> {
        let Some((scheme, rest)) = url.split_once("://") else {
            let guess = format!("http://{url}");
            let suggestion =
                (!url.contains('@') && Self::parse(&guess).is_ok()).then(|| quoted(&guess));
            return Err(NoUpstream { allowed: SHAPE, suggestion });
        };
        let scheme = Scheme::parse(scheme)?;
        let authority = authority(rest)?;
        let (host, port) = host_and_port(authority)?;
        let port = match port {
            Some(port) => parse_port(port)?,
            None => scheme.default_port(),
        };
        let brackets = host.contains(':');
        let name = if brackets { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        Ok(Self { name, scheme, host, port, models: None })
    }

    /// The URL that leads here.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme.name(), self.name)
    }
}

// === impl Scheme ===

impl Scheme {
    const ALL: [Self; 3] = [Self::Http, Self::H2c, Self::Https];

    /// As it stands in a URL.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::H2c => "h2c",
            Self::Https => "https",
        }
    }

    const fn default_port(self) -> u16 {
        match self {
            Self::Http | Self::H2c => 80,
            Self::Https => 443,
        }
    }

    fn parse(name: &str) -> Result<Self, NoUpstream> {
        Self::ALL.into_iter().find(|scheme| name.eq_ignore_ascii_case(scheme.name())).ok_or_else(
            || NoUpstream {
                allowed: "a scheme of http, h2c or https",
                suggestion: nearest(name, Self::ALL.map(Self::name)).map(quoted),
            },
        )
    }
}

// === impl NoUpstream ===

impl NoUpstream {
    fn because(allowed: &'static str) -> Self {
        Self { allowed, suggestion: None }
    }
}

/// What stands between scheme and path, when nothing follows it.
fn authority(rest: &str) -> Result<&str, NoUpstream> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    if authority.contains('@') {
        return Err(NoUpstream::because("no user or password in the URL"));
    }
    match tail {
        "" | "/" => Ok(authority),
        _ if tail.starts_with('/') => {
            Err(NoUpstream::because("no path: requests keep the one they came with"))
        }
        _ => Err(NoUpstream::because("no query or fragment: requests keep their own")),
    }
}

fn host_and_port(authority: &str) -> Result<(String, Option<&str>), NoUpstream> {
    if let Some(rest) = authority.strip_prefix('[') {
        let ipv6 = rest.split_once(']').and_then(|(host, tail)| {
            let host = host.parse::<Ipv6Addr>().ok()?;
            Some((
                host.to_string(),
                if tail.is_empty() { None } else { Some(tail.strip_prefix(':')?) },
            ))
        });
        return ipv6
            .ok_or_else(|| NoUpstream::because("an IPv6 address in brackets, such as [::1]:9001"));
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    if port.is_some_and(|port| port.contains(':')) {
        return Err(NoUpstream::because("an IPv6 address in brackets, such as [::1]:9001"));
    }
    if !is_host(host) {
        return Err(NoUpstream::because("a host name or an IP address after the scheme"));
    }
    Ok((host.to_ascii_lowercase(), port))
}

/// Letters, digits, dashes, dots and the underscores that container networks use, 253 of them at most (the
/// longest name that DNS has).
fn is_host(host: &str) -> bool {
    (1..=253).contains(&host.len())
        && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
        && host.bytes().any(|b| b.is_ascii_alphanumeric())
}

fn parse_port(port: &str) -> Result<u16, NoUpstream> {
    let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    digits
        .then(|| port.parse().ok())
        .flatten()
        .filter(|port| *port != 0)
        .ok_or_else(|| NoUpstream::because("a port of 1 … 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> (Scheme, String, u16, String) {
        let target = UpstreamTarget::parse(url).unwrap();
        (target.scheme, target.host, target.port, target.name)
    }

    #[test]
    fn hosts_and_ports_are_read_from_every_scheme() {
        let expected =
            |scheme, host: &str, port, name: &str| (scheme, host.to_owned(), port, name.to_owned());
        assert_eq!(
            target("http://127.0.0.1:9001"),
            expected(Scheme::Http, "127.0.0.1", 9001, "127.0.0.1:9001")
        );
        assert_eq!(target("h2c://[::1]:9001/"), expected(Scheme::H2c, "::1", 9001, "[::1]:9001"));
        assert_eq!(
            target("HTTPS://Host.example"),
            expected(Scheme::Https, "host.example", 443, "host.example:443")
        );
        assert_eq!(target("http://gpu_1"), expected(Scheme::Http, "gpu_1", 80, "gpu_1:80"));
        assert_eq!(
            target("https://[fe80::1]"),
            expected(Scheme::Https, "fe80::1", 443, "[fe80::1]:443")
        );
    }

    #[test]
    fn what_is_not_used_must_not_be_there() {
        let allowed = |url: &str| UpstreamTarget::parse(url).unwrap_err().allowed;
        assert!(allowed("http://a:1/v1").contains("path"));
        assert!(allowed("http://a:1//").contains("path"));
        assert!(allowed("http://a:1?x").contains("query"));
        assert!(allowed("http://a:1#x").contains("fragment"));
        assert!(allowed("http://me:secret@a:1").contains("password"));
        for port in ["0", "65536", "99999", "", "+1", "x"] {
            assert!(allowed(&format!("http://a:{port}")).contains("port"), "{port}");
        }
        for host in ["", "-", "a b", "ä", "a%20", "*"] {
            assert!(allowed(&format!("http://{host}:1")).contains("host"), "{host}");
        }
        for host in ["::1", "[::1", "[::1]9", "[1.2.3.4]", "[fe80::1%eth0]"] {
            assert!(allowed(&format!("http://{host}:1")).contains("brackets"), "{host}");
        }
    }

    #[test]
    fn near_misses_are_suggested() {
        let suggestion = |url: &str| UpstreamTarget::parse(url).unwrap_err().suggestion;
        assert_eq!(suggestion("127.0.0.1:9001").as_deref(), Some("\"http://127.0.0.1:9001\""));
        assert_eq!(suggestion("htps://a").as_deref(), Some("\"https\""));
        assert_eq!(suggestion("ftp://a"), Some("\"http\"".to_owned()));
        assert_eq!(suggestion(""), None);
    }
}
