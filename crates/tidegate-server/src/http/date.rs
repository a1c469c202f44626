use super::request::has;
use http::header::{self, HeaderMap, HeaderValue};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// The `Date` of responses, formatted when it is refreshed and not with each response. It follows the clock in
/// both directions; the HTTP server's own stands still after the clock was set back, until the old time comes
/// again.
#[derive(Debug)]
pub struct DateStamp(Mutex<Option<HeaderValue>>);

// === impl DateStamp ===

impl DateStamp {
    /// A stamp with the date of `now`.
    #[must_use]
    pub fn new(now: SystemTime) -> Self {
        Self(Mutex::new(http_date(now)))
    }

    /// Sets the date to that of `now`.
    pub fn refresh(&self, now: SystemTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = http_date(now);
    }

    /// Dates a response that has no date.
    pub fn stamp(&self, headers: &mut HeaderMap) {
        if has(headers, &header::DATE) {
            return;
        }
        if let Some(date) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            headers.insert(header::DATE, date.clone());
        }
    }
}

/// The date in the format of RFC 9110. `None` for a clock beyond the years that have one.
fn http_date(now: SystemTime) -> Option<HeaderValue> {
    let now = Timestamp::try_from(now).ok()?;
    let text = DateTimePrinter::new().timestamp_to_rfc9110_string(&now).ok()?;
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn date_of(stamp: &DateStamp) -> String {
        let mut headers = HeaderMap::new();
        stamp.stamp(&mut headers);
        headers[header::DATE].to_str().unwrap().to_owned()
    }

    #[test]
    fn the_date_goes_back_with_the_clock() {
        let at = |s| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
        let stamp = DateStamp::new(at(784_111_777));
        assert_eq!(date_of(&stamp), "Sun, 06 Nov 1994 08:49:37 GMT");
        stamp.refresh(at(784_111_777 - 365 * 24 * 3600));
        assert_eq!(date_of(&stamp), "Sat, 06 Nov 1993 08:49:37 GMT");
        stamp.refresh(at(784_111_778));
        assert_eq!(date_of(&stamp), "Sun, 06 Nov 1994 08:49:38 GMT");
    }

    #[test]
    fn the_date_of_an_upstream_is_kept_and_a_clock_without_a_date_gives_none() {
        let mut headers = HeaderMap::new();
        DateStamp::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 50)).stamp(&mut headers);
        assert!(headers.is_empty());
        headers.insert(header::DATE, HeaderValue::from_static("then"));
        DateStamp::new(SystemTime::UNIX_EPOCH).stamp(&mut headers);
        assert_eq!(headers.get_all(header::DATE).iter().collect::<Vec<_>>(), ["then"]);
    }
}
