use super::segment::{Segment, seconds};
use super::zone::Zone;
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use std::fmt;
use std::str::FromStr;

/// Period of tiers: a calendar day, month or year in the tariff's time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Period {
    /// From midnight to midnight.
    Day,
    /// From the first of a month.
    Month,
    /// From the first of January.
    Year,
}

// === impl Period ===

impl Period {
    /// Every period.
    pub const ALL: [Self; 3] = [Self::Day, Self::Month, Self::Year];

    /// Name in files and responses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    /// Period that contains a time. It begins with the first minute that the zone's calendar counts as part of it,
    /// so periods are contiguous, also where clocks change at midnight.
    pub(in crate::tariff) fn around(self, zone: &Zone, at_ns: i64) -> Segment {
        let at_s = seconds(at_ns);
        let first = self.first_day(local(at_s + zone.span(at_s).offset_s).date());
        let next = self.day_after(first);
        let until_s = begin(zone, next);
        if at_s < until_s {
            return Segment::of_seconds(begin(zone, first), until_s);
        }
        // Clocks went back over midnight: this is the previous day again, after the new one has begun.
        Segment::of_seconds(until_s, begin(zone, self.day_after(next)))
    }

    fn first_day(self, date: Date) -> Date {
        match self {
            Self::Day => date,
            Self::Month => date.first_of_month(),
            Self::Year => date.first_of_year(),
        }
    }

    fn day_after(self, first: Date) -> Date {
        let next = match (self, first.month()) {
            (Self::Day, _) => first.tomorrow(),
            (Self::Month, ..12) => Date::new(first.year(), first.month() + 1, 1),
            (Self::Month | Self::Year, _) => Date::new(first.year() + 1, 1, 1),
        };
        // No record is near the end of the calendar, the year 9999.
        next.unwrap_or(Date::MAX)
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(given: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|period| period.name() == given);
        found.ok_or_else(|| format!("{given:?} is no period: expected day, month or year"))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Local date and time of seconds that count local time since 1970.
fn local(local_s: i64) -> DateTime {
    TimeZone::UTC.to_datetime(Timestamp::from_second(local_s).unwrap_or_default())
}

/// Seconds of a local date and time since 1970.
pub(in crate::tariff) fn local_seconds(at: DateTime) -> i64 {
    TimeZone::UTC.to_timestamp(at).map_or(i64::MAX, Timestamp::as_second)
}

/// Start of a day, at a whole minute, because stores sum by the minute. Only historic offsets from UTC are no
/// whole number of minutes.
fn begin(zone: &Zone, date: Date) -> i64 {
    let at_s = zone.first_at(local_seconds(date.to_datetime(jiff::civil::Time::midnight())));
    at_s - at_s.rem_euclid(60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hours(zone: &str, at: &str) -> i64 {
        let at_ns = at.parse::<Timestamp>().unwrap().as_second() * 1_000_000_000;
        let day = Period::Day.around(&Zone::find(zone).unwrap(), at_ns);
        (day.until_ns - day.from_ns) / 3_600_000_000_000
    }

    #[test]
    fn a_day_has_23_24_or_25_hours() {
        assert_eq!(hours("Europe/Berlin", "2026-03-29T12:00:00Z"), 23);
        assert_eq!(hours("Europe/Berlin", "2026-06-01T12:00:00Z"), 24);
        assert_eq!(hours("Europe/Berlin", "2026-10-25T12:00:00Z"), 25);
        assert_eq!(hours("UTC", "2026-03-29T12:00:00Z"), 24);
        // Clocks are put forward at midnight: the day begins at one.
        assert_eq!(hours("Africa/Cairo", "2026-04-24T12:00:00Z"), 23);
    }

    proptest! {
        #[test]
        fn periods_follow_each_other(at_ns in any::<i64>()) {
            for name in ["Europe/Berlin", "America/St_Johns", "America/Sao_Paulo", "Asia/Kathmandu"] {
                let zone = Zone::find(name).unwrap();
                for period in Period::ALL {
                    let here = period.around(&zone, at_ns);
                    prop_assert!(here.contains(at_ns), "{name} {period} {here:?}");
                    if here.until_ns < i64::MAX {
                        prop_assert_eq!(here.until_ns % 60_000_000_000, 0);
                        prop_assert_eq!(period.around(&zone, here.until_ns).from_ns, here.until_ns);
                        prop_assert_eq!(period.around(&zone, here.until_ns - 1), here);
                    }
                }
            }
        }
    }
}
