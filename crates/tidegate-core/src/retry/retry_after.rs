use super::http_date::http_date;
use std::time::Duration;

/// Retry hint of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// Retry not before this time has passed.
    Wait(Duration),
    /// Do not retry: a gRPC pushback that is negative or not a number.
    Never,
}

/// Response header fields with a retry hint, unparsed. Absent fields are `None`.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::retry::{RetryAfter, RetryHeaders};
///
/// let headers = RetryHeaders { retry_after: Some("1"), tidegate_ms: Some("150"), grpc_pushback_ms: None };
/// let wait = headers.most_precise(Duration::ZERO);
/// assert_eq!(wait, Some(RetryAfter::Wait(Duration::from_millis(150))), "a second is 150 ms rounded up");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryHeaders<'a> {
    /// `Retry-After`: whole seconds, or a date.
    pub retry_after: Option<&'a str>,
    /// `retry-after-ms`: milliseconds, the wait before it was rounded up to seconds.
    pub tidegate_ms: Option<&'a str>,
    /// `grpc-retry-pushback-ms`: milliseconds; any other value forbids retries.
    pub grpc_pushback_ms: Option<&'a str>,
}

// === impl RetryAfter ===

impl RetryAfter {
    /// Parses the HTTP field `Retry-After`: seconds, or a date in any of HTTP's three formats. `now` is the time
    /// since the Unix epoch; a date in the past is a wait of zero.
    ///
    /// Returns `None` for anything else.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_core::retry::RetryAfter;
    ///
    /// let now = Duration::from_secs(784_111_770);
    /// let seven = Some(RetryAfter::Wait(Duration::from_secs(7)));
    /// assert_eq!(RetryAfter::parse("7", now), seven);
    /// assert_eq!(RetryAfter::parse("Sun, 06 Nov 1994 08:49:37 GMT", now), seven);
    /// assert_eq!(RetryAfter::parse("soon", now), None);
    /// ```
    #[must_use]
    pub fn parse(field: &str, now: Duration) -> Option<Self> {
        let field = trim(field);
        let wait = match count(field) {
            Some(seconds) => Duration::from_secs(seconds),
            None => http_date(field, now)?.saturating_sub(now),
        };
        Some(Self::Wait(wait))
    }

    fn parse_ms(field: &str) -> Option<Self> {
        count(trim(field)).map(|ms| Self::Wait(Duration::from_millis(ms)))
    }
}

// === impl RetryHeaders ===

impl RetryHeaders<'_> {
    /// Most precise hint: milliseconds before seconds, Tidegate's field before gRPC's. A malformed field counts as
    /// absent, except gRPC's, where it forbids retries. `now` is the time since the Unix epoch.
    #[must_use]
    pub fn most_precise(&self, now: Duration) -> Option<RetryAfter> {
        let tidegate = self.tidegate_ms.and_then(RetryAfter::parse_ms);
        let grpc = self.grpc_pushback_ms;
        let grpc = grpc.map(|field| RetryAfter::parse_ms(field).unwrap_or(RetryAfter::Never));
        if grpc == Some(RetryAfter::Never) {
            return grpc;
        }
        tidegate.or(grpc).or_else(|| RetryAfter::parse(self.retry_after?, now))
    }
}

fn trim(field: &str) -> &str {
    field.trim_matches([' ', '\t'])
}

/// Digits and nothing else. A number out of range is a very long time, not an error.
fn count(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Duration = Duration::from_secs(784_111_770);

    fn wait_ms(ms: u64) -> Option<RetryAfter> {
        Some(RetryAfter::Wait(Duration::from_millis(ms)))
    }

    #[test]
    fn seconds_and_dates_are_read() {
        for (field, expected) in [
            ("0", wait_ms(0)),
            (" 120\t", wait_ms(120_000)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", wait_ms(7_000)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", wait_ms(0)),
        ] {
            assert_eq!(RetryAfter::parse(field, NOW), expected, "{field}");
        }
    }

    #[test]
    fn nonsense_is_as_good_as_nothing() {
        for field in ["", " ", "-1", "+1", "1.5", "1s", "0x10", "soon", "1, 2", "１", "NaN"] {
            assert_eq!(RetryAfter::parse(field, NOW), None, "{field}");
        }
    }

    #[test]
    fn more_seconds_than_can_be_counted_are_a_very_long_time() {
        let field = "9".repeat(400);
        let forever = Some(RetryAfter::Wait(Duration::from_secs(u64::MAX)));
        assert_eq!(RetryAfter::parse(&field, NOW), forever);
    }

    #[test]
    fn the_finest_wins_and_what_cannot_be_read_is_passed_over() {
        let all = RetryHeaders {
            retry_after: Some("3"),
            tidegate_ms: Some("150"),
            grpc_pushback_ms: Some("200"),
        };
        assert_eq!(all.most_precise(NOW), wait_ms(150));
        assert_eq!(RetryHeaders { tidegate_ms: None, ..all }.most_precise(NOW), wait_ms(200));
        assert_eq!(RetryHeaders { tidegate_ms: Some("?"), ..all }.most_precise(NOW), wait_ms(200));
        let field_only = RetryHeaders { tidegate_ms: Some("-1"), grpc_pushback_ms: None, ..all };
        assert_eq!(field_only.most_precise(NOW), wait_ms(3_000));
        assert_eq!(RetryHeaders::default().most_precise(NOW), None);
    }

    #[test]
    fn grpc_forbids_with_what_is_no_number() {
        for field in ["-1", "", "never"] {
            let headers = RetryHeaders {
                grpc_pushback_ms: Some(field),
                tidegate_ms: Some("1"),
                ..RetryHeaders::default()
            };
            assert_eq!(headers.most_precise(NOW), Some(RetryAfter::Never), "{field}");
        }
    }

    proptest! {
        #[test]
        fn no_field_panics(field in ".{0,40}", now in any::<Duration>()) {
            let headers = RetryHeaders {
                retry_after: Some(&field),
                tidegate_ms: Some(&field),
                grpc_pushback_ms: Some(&field),
            };
            let _ = (headers.most_precise(now), RetryAfter::parse(&field, now));
        }
    }
}
