use super::period::local_seconds;
use super::segment::{nanoseconds, seconds};
use super::zone::{UnknownZone, Zone};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use std::fmt;

/// Local date and time in a tariff's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalTime(DateTime);

/// Error for text that is no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeParseError {
    /// Text that was given.
    pub given: String,
}

// === impl LocalTime ===

impl LocalTime {
    /// Creates a local time; `None` if the calendar does not have it.
    #[must_use]
    pub fn new(year: i16, month: i8, day: i8, hour: i8, minute: i8, second: i8) -> Option<Self> {
        DateTime::new(year, month, day, hour, minute, second, 0).ok().map(Self)
    }

    /// First time at which clocks of the zone show it.
    pub(in crate::tariff) fn in_zone(self, zone: &Zone) -> i64 {
        nanoseconds(zone.first_at(local_seconds(self.0)))
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.time() == jiff::civil::Time::midnight() {
            write!(f, "{}", self.0.date())
        } else {
            write!(f, "{} {}", self.0.date(), self.0.time())
        }
    }
}

/// Parses a time such as `2026-03-29T02:30:00Z`, `2026-03-29T02:30:00+01:00`, or, local to a zone,
/// `2026-03-29T02:30` or `2026-03-29`, to nanoseconds since 1970.
///
/// # Errors
///
/// If the text has none of these forms, or is out of the range of a record's time, the years 1678 to 2261.
pub fn time_ns(text: &str, zone: &str) -> Result<i64, TimeParseError> {
    let wrong = || TimeParseError { given: text.to_owned() };
    if let Ok(at) = text.parse::<Timestamp>() {
        return i64::try_from(at.as_nanosecond()).map_err(|_| wrong());
    }
    let (at, zone) = text
        .parse::<DateTime>()
        .ok()
        .zip(Zone::find(zone).ok())
        .filter(|(at, _)| (1678..=2261).contains(&at.year()))
        .ok_or_else(wrong)?;
    Ok(LocalTime(at).in_zone(&zone))
}

/// Formats a time in a zone, to the second, with its offset from UTC.
///
/// # Errors
///
/// If there is no such zone.
pub fn time_text(at_ns: i64, zone: &str) -> Result<String, UnknownZone> {
    let offset_s = Zone::find(zone)?.span(seconds(at_ns)).offset_s;
    let shown = Timestamp::from_second(seconds(at_ns) + offset_s).unwrap_or_default();
    let (sign, offset_s) = (if offset_s < 0 { '-' } else { '+' }, offset_s.abs());
    Ok(format!(
        "{} {sign}{:02}:{:02}",
        TimeZone::UTC.to_datetime(shown).strftime("%Y-%m-%d %H:%M:%S"),
        offset_s / 3_600,
        offset_s % 3_600 / 60,
    ))
}

// === impl TimeParseError ===

impl fmt::Display for TimeParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no time: expected 2026-03-29T02:30:00Z, or 2026-03-29T02:30 or 2026-03-29 by the tariff's \
             clocks",
            self.given
        )
    }
}

impl std::error::Error for TimeParseError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_or_by_the_clocks_of_a_zone() {
        let utc = time_ns("2026-03-29T01:00:00Z", "Europe/Berlin").unwrap();
        assert_eq!(time_ns("2026-03-29T03:00", "Europe/Berlin"), Ok(utc));
        assert_eq!(time_ns("2026-03-29T03:00:00+02:00", "UTC"), Ok(utc));
        assert_eq!(time_text(utc, "Europe/Berlin").unwrap(), "2026-03-29 03:00:00 +02:00");
        assert_eq!(time_text(utc - 1, "Europe/Berlin").unwrap(), "2026-03-29 01:59:59 +01:00");
        for wrong in ["", "tomorrow", "2026-13-01", "9999-01-01", "0001-01-01T00:00:00Z"] {
            assert_eq!(time_ns(wrong, "UTC").unwrap_err().given, wrong);
        }
    }
}
