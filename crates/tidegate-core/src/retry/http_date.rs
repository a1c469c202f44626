//! The three forms of an HTTP date (RFC 9110, 5.6.7), as the time since the Unix epoch.

use std::time::Duration;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const DAY_S: i64 = 86_400;

/// Reads an HTTP date in any of the three forms that a recipient must accept, as the time since the Unix epoch;
/// `None` for anything else and for what lies before the epoch. The name of the weekday is not compared with
/// the date: nothing depends on it.
///
/// `now`, since the epoch too, is needed for the years of two digits in the oldest form: they are never more
/// than 50 years ahead.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::retry::http_date;
///
/// let date = http_date("Sun, 06 Nov 1994 08:49:37 GMT", Duration::ZERO);
/// assert_eq!(date, Some(Duration::from_secs(784_111_777)));
/// ```
#[must_use]
pub fn http_date(text: &str, now: Duration) -> Option<Duration> {
    let parts: Vec<&str> = text.split_ascii_whitespace().take(7).collect();
    let (day, month, year, time) = match parts[..] {
        // Sun, 06 Nov 1994 08:49:37 GMT
        [weekday, day, month, year, time, "GMT"] if weekday.ends_with(',') => {
            (number(day, 2)?, month, number(year, 4)?, time)
        }
        // Sunday, 06-Nov-94 08:49:37 GMT
        [weekday, date, time, "GMT"] if weekday.ends_with(',') => {
            let mut date = date.split('-');
            let (day, month, year) = (date.next()?, date.next()?, date.next()?);
            if date.next().is_some() {
                return None;
            }
            (number(day, 2)?, month, full_year(number(year, 2)?, now), time)
        }
        // Sun Nov  6 08:49:37 1994
        [_weekday, month, day, time, year] => (number(day, 2)?, month, number(year, 4)?, time),
        _ => return None,
    };
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let seconds = days_since_epoch(year, month, day)? * DAY_S + second_of_day(time)?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

fn number(text: &str, digits_max: usize) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits && text.len() <= digits_max { text.parse().ok() } else { None }
}

/// 60 is a leap second.
fn second_of_day(time: &str) -> Option<i64> {
    let mut parts = time.split(':').map(|part| number(part, 2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let valid = parts.next().is_none() && hour < 24 && minute < 60 && second <= 60;
    valid.then_some(hour * 3600 + minute * 60 + second)
}

fn full_year(two_digits: i64, now: Duration) -> i64 {
    // Within a year of the truth, which is all that a horizon of 50 years needs.
    let this_year = 1970 + (now.as_secs() / (DAY_S as u64 * 365)).min(8_000) as i64;
    let year = this_year - this_year % 100 + two_digits;
    if year > this_year + 50 { year - 100 } else { year }
}

/// Years are counted from March, so that the leap day is the last of its year and every month starts at
/// `(153 · month + 2) / 5`.
fn days_since_epoch(year: i64, month: i64, day: i64) -> Option<i64> {
    if day < 1 || day > days_of_month(year, month) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // 719,468 days lie between the first of March of year 0 and the epoch.
    Some(year * 365 + leap_days + day_of_year - 719_468)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IN_2026: Duration = Duration::from_secs(1_783_000_000);

    fn seconds(text: &str) -> Option<u64> {
        http_date(text, IN_2026).map(|time| time.as_secs())
    }

    #[test]
    fn the_three_forms_of_the_standard_mean_the_same() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(seconds(text), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn days_are_counted_right_around_leap_years() {
        for (text, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
            ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
            ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
            ("Thu, 31 Dec 2099 23:59:59 GMT", 4_102_444_799),
            ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn two_digits_of_a_year_are_at_most_fifty_years_ahead() {
        assert_eq!(seconds("Thursday, 01-Jan-70 00:00:00 GMT"), Some(3_155_760_000), "2070");
        assert_eq!(seconds("Saturday, 01-Jan-77 00:00:00 GMT"), Some(220_924_800), "1977");
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 31 Feb 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37:01 GMT",
            "Sun, 06 nov 1994 08:49:37 GMT",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 19944 08:49:37 GMT",
            "Sunday, 06-Nov-94-1 08:49:37 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,60}", now in any::<Duration>()) {
            let _ = http_date(&text, now);
        }

        #[test]
        fn no_text_like_a_date_panics(text in "[A-Z][a-z]{2},? [0-9]{1,5}[- ][A-Z][a-z]{2}[- ][0-9]{1,5} [0-9:]{0,9} GMT") {
            let _ = http_date(&text, IN_2026);
        }
    }
}
