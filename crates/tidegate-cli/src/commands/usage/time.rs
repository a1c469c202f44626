use crate::failure::Failure;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Parses an age (`90s`, `1h`, `7d`), a date, or a time; UTC without a time zone.
pub fn parse(flag: &str, text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    let at = |time: DateTime| time.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp());
    ago(text, now)
        .or_else(|| text.parse::<Timestamp>().ok())
        .or_else(|| text.parse::<DateTime>().ok().and_then(|time| at(time).ok()))
        .ok_or_else(|| {
            Failure::Usage(format!(
                "{flag}: {text:?} is not a time; expected an age such as 90s, 15m, 1h or 7d, a date such as \
                 2026-11-16, or a time such as 2026-11-16T08:00:00Z"
            ))
        })
}

fn ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let seconds = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    let span = number.parse::<i64>().ok()?.checked_mul(seconds)?;
    now.checked_sub(SignedDuration::from_secs(span)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_understood_and_the_rest_refused() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        let table = [
            ("90s", "2026-11-16T11:58:30Z"),
            ("15m", "2026-11-16T11:45:00Z"),
            ("1h", "2026-11-16T11:00:00Z"),
            ("7d", "2026-11-09T12:00:00Z"),
            ("2026-11-01", "2026-11-01T00:00:00Z"),
            ("2026-11-01T08:30:00", "2026-11-01T08:30:00Z"),
            ("2026-11-01T08:30:00+02:00", "2026-11-01T06:30:00Z"),
        ];
        for (text, expected) in table {
            assert_eq!(parse("--since", text, now).unwrap(), expected.parse().unwrap(), "{text}");
        }
        for wrong in ["", "h", "1y", "yesterday", "-1h", "99999999999999999999h", "9999999999d"] {
            let failure = parse("--since", wrong, now).unwrap_err().to_string();
            assert!(failure.contains("--since") && failure.contains("expected"), "{failure}");
        }
    }
}
