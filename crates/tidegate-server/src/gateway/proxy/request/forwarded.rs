use crate::config::ForwardedPolicy;
use http::header::{self, Entry, HeaderMap, HeaderName, HeaderValue};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The fields that tell an upstream who asked, made once a connection and not once a request.
pub struct ForwardedCache {
    client: HeaderValue,
    proto: HeaderValue,
    node: String,
    last: Mutex<Option<Arc<Hop>>>,
}

/// The fields that this hop adds to a request that passed no proxy before. They are written behind the request's
/// own fields, or put into its head where a protocol has no lines.
#[derive(Debug)]
pub struct Hop {
    host: HeaderValue,
    fields: [(HeaderName, HeaderValue); 5],
    lines: Vec<u8>,
}

// === impl ForwardedCache ===

impl ForwardedCache {
    pub fn new(client: IpAddr, secure: bool) -> Self {
        let proto = if secure { "https" } else { "http" };
        Self {
            client: value(&client.to_string()),
            proto: HeaderValue::from_static(proto),
            node: forwarded_node(client),
            last: Mutex::new(None),
        }
    }

    /// The fields for a request to this host, `Via` with them, if there is none of them in it yet. A connection
    /// mostly asks for one host again and again.
    pub fn hop(
        &self,
        headers: &HeaderMap,
        host: &HeaderValue,
        policy: ForwardedPolicy,
        via: &HeaderValue,
    ) -> Option<Arc<Hop>> {
        let is_first = policy != ForwardedPolicy::Off
            && !headers.keys().any(|key| is_forwarding(key.as_str()) || *key == header::VIA);
        if !is_first {
            return None;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hop) = last.as_ref().filter(|hop| hop.host == *host) {
            return Some(Arc::clone(hop));
        }
        let fields = [
            (X_FORWARDED_FOR, self.client.clone()),
            (X_FORWARDED_PROTO, self.proto.clone()),
            (X_FORWARDED_HOST, host.clone()),
            (header::FORWARDED, self.element(host)),
            (header::VIA, via.clone()),
        ];
        Some(Arc::clone(last.insert(Arc::new(Hop::new(host.clone(), fields)))))
    }

    /// Writes `X-Forwarded-*` and `Forwarded` into a request for this host.
    pub fn apply(&self, headers: &mut HeaderMap, host: &HeaderValue, policy: ForwardedPolicy) {
        match policy {
            ForwardedPolicy::Off => {}
            ForwardedPolicy::Replace => {
                headers.insert(X_FORWARDED_FOR, self.client.clone());
                headers.insert(X_FORWARDED_PROTO, self.proto.clone());
                headers.insert(X_FORWARDED_HOST, host.clone());
                headers.insert(header::FORWARDED, self.element(host));
            }
            ForwardedPolicy::Append => {
                append(headers, X_FORWARDED_FOR, self.client.clone());
                // A proxy before us knows what the client used; we know only what that proxy used.
                keep_first(headers, X_FORWARDED_PROTO, || self.proto.clone());
                keep_first(headers, X_FORWARDED_HOST, || host.clone());
                append(headers, header::FORWARDED, self.element(host));
            }
        }
    }

    /// This hop's element of `Forwarded` (RFC 7239).
    fn element(&self, host: &HeaderValue) -> HeaderValue {
        let proto = self.proto.to_str().unwrap_or("http");
        // Quoted, because a host with a port is no token; one that would break the quotes is left out.
        match host.to_str().ok().filter(|host| !host.contains(['"', '\\'])) {
            Some(host) => value(&format!("for={};host=\"{host}\";proto={proto}", self.node)),
            None => value(&format!("for={};proto={proto}", self.node)),
        }
    }
}

// === impl Hop ===

impl Hop {
    fn new(host: HeaderValue, fields: [(HeaderName, HeaderValue); 5]) -> Self {
        let mut lines = Vec::new();
        for (name, value) in &fields {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                lines.extend_from_slice(part);
            }
        }
        Self { host, fields, lines }
    }

    /// The fields as lines of HTTP/1.1.
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Puts the fields into a head.
    pub fn add_to(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.fields {
            headers.append(name, value.clone());
        }
    }
}

fn is_forwarding(name: &str) -> bool {
    matches!(name, "x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host" | "forwarded")
}

fn append(headers: &mut HeaderMap, name: HeaderName, ours: HeaderValue) {
    match headers.entry(name) {
        Entry::Vacant(entry) => {
            entry.insert(ours);
        }
        Entry::Occupied(mut entry) => {
            let mut joined = Vec::new();
            for theirs in entry.iter() {
                joined.extend_from_slice(theirs.as_bytes());
                joined.extend_from_slice(b", ");
            }
            joined.extend_from_slice(ours.as_bytes());
            entry.insert(HeaderValue::from_bytes(&joined).unwrap_or(ours));
        }
    }
}

fn keep_first(headers: &mut HeaderMap, name: HeaderName, ours: impl FnOnce() -> HeaderValue) {
    if let Entry::Vacant(entry) = headers.entry(name) {
        entry.insert(ours());
    }
}

/// An address as RFC 7239 wants it: IPv6 in brackets and quotes.
fn forwarded_node(client: IpAddr) -> String {
    match client {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("\"[{address}]\""),
    }
}

/// Addresses and hosts that were header values before are header values again.
fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(policy: ForwardedPolicy, before: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers: HeaderMap = before
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let cache = ForwardedCache::new("192.0.2.7".parse().unwrap(), false);
        cache.apply(&mut headers, &HeaderValue::from_static("api.example:8000"), policy);
        headers
    }

    #[test]
    fn a_first_proxy_says_who_asked_for_what_and_how() {
        let headers = applied(ForwardedPolicy::Append, &[]);
        assert_first(&headers);
    }

    #[track_caller]
    fn assert_first(headers: &HeaderMap) {
        assert_eq!(headers["x-forwarded-for"], "192.0.2.7");
        assert_eq!(headers["x-forwarded-proto"], "http");
        assert_eq!(headers["x-forwarded-host"], "api.example:8000");
        assert_eq!(headers["forwarded"], "for=192.0.2.7;host=\"api.example:8000\";proto=http");
    }

    #[test]
    fn a_request_that_passed_no_proxy_gets_the_same_fields_as_lines_and_as_a_map() {
        let cache = ForwardedCache::new("192.0.2.7".parse().unwrap(), false);
        let host = HeaderValue::from_static("api.example:8000");
        let via = HeaderValue::from_static("1.1 tidegate-1");
        let hop = |headers: &HeaderMap, policy| cache.hop(headers, &host, policy, &via);
        for policy in [ForwardedPolicy::Append, ForwardedPolicy::Replace] {
            let hop = hop(&HeaderMap::new(), policy).unwrap();
            let mut headers = HeaderMap::new();
            hop.add_to(&mut headers);
            assert_first(&headers);
            assert_eq!(headers["via"], "1.1 tidegate-1");
            let lines = headers
                .iter()
                .map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()));
            assert_eq!(hop.lines(), lines.collect::<String>().as_bytes());
        }
        assert!(hop(&HeaderMap::new(), ForwardedPolicy::Off).is_none());
        for name in ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "via"]
        {
            let headers = [(HeaderName::from_static(name), HeaderValue::from_static("x"))];
            assert!(
                hop(&headers.into_iter().collect(), ForwardedPolicy::Append).is_none(),
                "{name}"
            );
        }
    }

    #[test]
    fn another_host_of_a_connection_gets_its_own_fields() {
        let cache = ForwardedCache::new("192.0.2.7".parse().unwrap(), false);
        let via = HeaderValue::from_static("1.1 tidegate-1");
        for host in ["a", "a", "b", "a"] {
            let value = HeaderValue::from_static(host);
            let hop = cache.hop(&HeaderMap::new(), &value, ForwardedPolicy::Append, &via).unwrap();
            let mut headers = HeaderMap::new();
            hop.add_to(&mut headers);
            assert_eq!(headers["x-forwarded-host"], host);
        }
    }

    #[test]
    fn a_second_proxy_appends_itself_and_keeps_what_the_first_knew() {
        let before = [
            ("x-forwarded-for", "198.51.100.1"),
            ("x-forwarded-proto", "https"),
            ("forwarded", "for=198.51.100.1"),
        ];
        let headers = applied(ForwardedPolicy::Append, &before);
        assert_eq!(headers["x-forwarded-for"], "198.51.100.1, 192.0.2.7");
        assert_eq!(headers["x-forwarded-proto"], "https");
        assert!(
            headers["forwarded"].to_str().unwrap().starts_with("for=198.51.100.1, for=192.0.2.7;")
        );
    }

    #[test]
    fn replace_believes_nothing_that_the_client_says() {
        let before = [
            ("x-forwarded-for", "6.6.6.6"),
            ("x-forwarded-proto", "https"),
            ("forwarded", "for=6.6.6.6"),
        ];
        let headers = applied(ForwardedPolicy::Replace, &before);
        assert_eq!(headers["x-forwarded-for"], "192.0.2.7");
        assert_eq!(headers["x-forwarded-proto"], "http");
        assert!(!headers["forwarded"].to_str().unwrap().contains("6.6.6.6"));
    }

    #[test]
    fn off_leaves_the_request_alone() {
        assert!(applied(ForwardedPolicy::Off, &[]).is_empty());
    }

    #[test]
    fn ipv6_is_bracketed_and_quoted_and_a_hostile_host_is_left_out() {
        let cache = ForwardedCache::new("2001:db8::1".parse().unwrap(), true);
        let element = cache.element(&HeaderValue::from_static("a\";proto=evil"));
        assert_eq!(element, "for=\"[2001:db8::1]\";proto=https");
    }
}
