use crate::http::admission::TOKEN_HEADER;
use crate::http::request::values;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Fields that speak to this hop alone and are never passed on, beside those that `Connection` names.
///
/// `Trailer` is not one of them: it announces what follows the body, which is passed on. `Expect` is: it is met
/// here, by asking for the body once the request is admitted.
static ALWAYS: [HeaderName; 10] = [
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TRANSFER_ENCODING,
    header::EXPECT,
    HeaderName::from_static(TOKEN_HEADER),
];

/// The index of a field in `ALWAYS`. A `match` looks at the length first, and most names end there.
fn always_index(name: &str) -> Option<usize> {
    Some(match name {
        "connection" => 0,
        "upgrade" => 1,
        "te" => 2,
        "keep-alive" => 3,
        "proxy-connection" => 4,
        "proxy-authenticate" => 5,
        "proxy-authorization" => 6,
        "transfer-encoding" => 7,
        "expect" => 8,
        TOKEN_HEADER => 9,
        _ => return None,
    })
}

/// Fields of a message that are for this hop.
#[derive(Debug, Default)]
pub struct Stripped {
    /// The protocol that it wants to switch to.
    pub upgrade: Option<HeaderValue>,
    /// The sender takes trailers.
    pub trailers: bool,
    /// The transfer coding of its body, if one is named.
    pub coding: Option<Coding>,
}

/// A coding of a body for the way from hop to hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// Cut into chunks, which is undone here.
    Chunked,
    /// Something that can't be undone here, and would be lost if passed on without its name.
    Other,
}

/// Removes what is for this hop alone, and answers which of it matters here.
pub fn strip(headers: &mut HeaderMap) -> Stripped {
    // One look at each field: most messages have none of these but `Connection: keep-alive`.
    let mut present = [false; ALWAYS.len()];
    for key in headers.keys() {
        if let Some(index) = always_index(key.as_str()) {
            present[index] = true;
        }
    }
    if present == [false; ALWAYS.len()] {
        return Stripped::default();
    }
    let [connection, upgrade, te, .., transfer_encoding, _, _] = present;
    let stripped = Stripped {
        upgrade: if upgrade { upgrade_wanted(headers) } else { None },
        trailers: te && wants_trailers(headers),
        coding: if transfer_encoding { coding(headers) } else { None },
    };
    if stripped.coding.is_some() {
        // The coding frames the body; a length beside it is wrong or an attack.
        headers.remove(header::CONTENT_LENGTH);
    }
    if connection {
        strip_named_by_connection(headers);
    }
    for (name, _) in ALWAYS.iter().zip(present).filter(|(_, present)| *present) {
        headers.remove(name);
    }
    stripped
}

fn strip_named_by_connection(headers: &mut HeaderMap) {
    let is_all_usual =
        values(headers, &header::CONNECTION).all(|value| value.to_str().is_ok_and(is_usual));
    if is_all_usual {
        // Nearly always: what it names goes with the fixed list.
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|name| !is_usual(name))
        .filter_map(|name| name.parse().ok())
        .collect();
    for name in named {
        // Naming these would let a sender cut the message's own framing or target out of it.
        if name != header::HOST && name != header::CONTENT_LENGTH {
            headers.remove(name);
        }
    }
}

fn is_usual(name: &str) -> bool {
    ["keep-alive", "close", "upgrade", "te", ""]
        .iter()
        .any(|usual| name.eq_ignore_ascii_case(usual))
}

fn upgrade_wanted(headers: &HeaderMap) -> Option<HeaderValue> {
    let protocol = headers.get(header::UPGRADE)?;
    // HTTP/2 is never entered by upgrade: RFC 9113 withdrew it, and a request smuggled into it would bypass
    // admission.
    let http2 = protocol.as_bytes().to_ascii_lowercase().windows(2).any(|pair| pair == b"h2");
    (!http2 && has_token(headers, &header::CONNECTION, "upgrade")).then(|| protocol.clone())
}

fn coding(headers: &HeaderMap) -> Option<Coding> {
    let mut fields = headers.get_all(header::TRANSFER_ENCODING).iter();
    let (first, second) = (fields.next()?, fields.next());
    let chunked = first.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    Some(if chunked && second.is_none() { Coding::Chunked } else { Coding::Other })
}

fn wants_trailers(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TE) && has_token(headers, &header::TE, "trailers")
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|item| {
            item.split(';').next().is_some_and(|item| item.trim().eq_ignore_ascii_case(token))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn what_is_for_this_hop_is_removed_with_what_connection_names() {
        let mut map = headers(&[
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic x"),
            ("transfer-encoding", "chunked"),
            ("te", "gzip"),
            ("accept", "*/*"),
            ("trailer", "x-sum"),
        ]);
        let stripped = strip(&mut map);
        let mut left: Vec<_> = map.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "trailer"]);
        assert!(stripped.upgrade.is_none() && !stripped.trailers);
    }

    #[test]
    fn every_field_of_this_hop_is_found_by_its_name() {
        for (index, name) in ALWAYS.iter().enumerate() {
            assert_eq!(always_index(name.as_str()), Some(index));
        }
        assert_eq!(always_index("trailer"), None);
    }

    #[test]
    fn connection_cannot_cut_out_host_or_length() {
        let mut map = headers(&[
            ("connection", "host, content-length"),
            ("host", "a"),
            ("content-length", "3"),
        ]);
        strip(&mut map);
        assert_eq!(map.len(), 2);
    }

    #[test]
    fn an_upgrade_needs_both_fields_and_is_never_to_http2() {
        let wanted = |connection, upgrade| {
            strip(&mut headers(&[("connection", connection), ("upgrade", upgrade)]))
                .upgrade
                .is_some()
        };
        assert!(wanted("Upgrade", "websocket"));
        assert!(wanted("keep-alive, upgrade", "websocket"));
        assert!(!wanted("keep-alive", "websocket"));
        assert!(!wanted("Upgrade, HTTP2-Settings", "h2c"));
        assert!(!wanted("upgrade", "H2C"));
    }

    #[test]
    fn trailers_are_wanted_only_when_te_says_so() {
        assert!(strip(&mut headers(&[("te", "gzip;q=0.5, trailers")])).trailers);
        assert!(!strip(&mut headers(&[("te", "gzip")])).trailers);
    }
}
