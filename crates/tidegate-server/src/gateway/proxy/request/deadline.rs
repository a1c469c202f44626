use crate::http::request::values;
use http::header::{HeaderMap, HeaderName};
use std::time::Duration;

/// The time that a client waits for the response, in milliseconds.
static TIMEOUT_MS: HeaderName = HeaderName::from_static("tidegate-timeout-ms");

/// The same in gRPC: at most eight digits and a unit.
static GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The time that the client of a request waits for the response, if it says so. A value that can't be read is
/// ignored: the upstream will judge it.
pub fn of(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &HeaderName| values(headers, name).next()?.to_str().ok().map(str::trim);
    let ms = text(&TIMEOUT_MS).and_then(|text| text.parse().ok()).map(Duration::from_millis);
    ms.or_else(|| grpc(text(&GRPC_TIMEOUT)?))
}

fn grpc(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn waits(name: &'static str, value: &'static str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        of(&headers)
    }

    #[test]
    fn both_headers_are_read_in_their_units() {
        assert_eq!(waits("tidegate-timeout-ms", " 1500 "), Some(Duration::from_millis(1500)));
        let units = [
            ("2H", 7_200_000_000),
            ("3M", 180_000_000),
            ("4S", 4_000_000),
            ("5m", 5_000),
            ("6u", 6),
            ("7000n", 7),
        ];
        for (text, us) in units {
            assert_eq!(waits("grpc-timeout", text), Some(Duration::from_micros(us)), "{text}");
        }
    }

    #[test]
    fn garbage_is_no_deadline() {
        for text in ["", "S", "1", "-1S", "1.5S", "123456789S", "1x", "99999999999999999999", "ä"]
        {
            assert_eq!(grpc(text), None, "{text:?}");
        }
        assert_eq!(waits("tidegate-timeout-ms", "soon"), None);
        assert_eq!(waits("tidegate-timeout-ms", "-5"), None);
        assert_eq!(of(&HeaderMap::new()), None);
    }
}
