use jiff::Timestamp;
use std::time::Duration;
use tidegate::retry::{RetryAfter, RetryHeaders, http_date};

/// The first second after the last year that has four digits.
const YEAR_10000_S: u64 = 253_402_300_800;

/// In 1970, in 2026, and at the end of time.
const NOWS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1_783_000_000), Duration::MAX];

/// Reads a Retry-After field and its relatives. A date is the one that a calendar has, also after it was written
/// in the other formats.
pub fn run(input: &[u8]) -> bool {
    let field = String::from_utf8_lossy(input);
    let mut accepted = false;
    for now in NOWS {
        let wait = RetryAfter::parse(&field, now);
        accepted |= wait.is_some();
        if let Some(date) = http_date(&field, now) {
            assert_eq!(wait, Some(RetryAfter::Wait(date.saturating_sub(now))), "{field:?}");
            check_date(date);
        }
        let only = |tidegate_ms, grpc_pushback_ms, retry_after| {
            RetryHeaders { retry_after, tidegate_ms, grpc_pushback_ms }.most_precise(now)
        };
        let all = only(Some(&*field), Some(&*field), Some(&*field));
        assert_eq!(only(None, None, Some(&*field)), wait);
        assert_eq!(all, only(None, Some(&*field), None), "milliseconds come first");
        let ms = only(Some(&*field), None, None);
        assert!(ms.is_none() || ms == all);
    }
    accepted
}

fn check_date(date: Duration) {
    // A leap second at the end of the last year.
    assert!(date.as_secs() <= YEAR_10000_S, "{date:?}");
    // The calendar ends two days before that year.
    let Ok(time) = Timestamp::from_second(date.as_secs() as i64) else {
        return assert!(date.as_secs() > YEAR_10000_S - 2 * 86_400, "{date:?}");
    };
    for format in ["%a, %d %b %Y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"] {
        let written = time.strftime(format).to_string();
        assert_eq!(http_date(&written, Duration::ZERO), Some(date), "{written}");
    }
}
