use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::Authority;
use std::net::SocketAddr;

/// The values of a field. Among the few fields of a message, comparing names is cheaper than hashing one.
pub(crate) fn values<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a HeaderValue> {
    headers.iter().filter(move |(key, _)| *key == name).map(|(_, value)| value)
}

/// Returns true if a message has a field.
pub(crate) fn has(headers: &HeaderMap, name: &HeaderName) -> bool {
    values(headers, name).next().is_some()
}

/// Returns true if a browser sent the request for a page of another site. Only browsers name an origin. HTTP/2 has
/// the host in the target.
pub(crate) fn is_cross_origin(parts: &Parts) -> bool {
    let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else { return false };
    let (_, origin) = origin.split_once("://").unwrap_or_default();
    // The owner of a name can point it at this host; an address can't be pointed.
    let is_address = origin.parse::<SocketAddr>().is_ok() || origin.starts_with("localhost:");
    let host = text(header::HOST).or(parts.uri.authority().map(Authority::as_str));
    !is_address || host != Some(origin)
}

/// Decodes a parameter's value in a query.
pub(crate) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = tail.get(..2).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
        let hex = hex.and_then(|hex| std::str::from_utf8(hex).ok());
        match (first, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            (b'+', _) => {
                bytes.push(b' ');
                rest = tail;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns true if a request speaks gRPC, by its content type.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let content_type = values(headers, &header::CONTENT_TYPE).next().map(HeaderValue::as_bytes);
    // gRPC-Web is made for HTTP/1.1 and is no gRPC.
    match content_type.and_then(|value| value.strip_prefix(b"application/grpc")) {
        Some(rest) => matches!(rest.first(), None | Some(b'+' | b';')),
        None => false,
    }
}
