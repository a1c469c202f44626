use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::fmt;

const SECOND_NS: i64 = 1_000_000_000;

/// Offsets of a time zone for all times that a record can have: spans of constant offset from UTC. Pricing then
/// needs integer arithmetic only.
#[derive(Debug)]
pub(in crate::tariff) struct Zone {
    name: Box<str>,
    /// Ordered by time; the first is unbounded at its start.
    spans: Vec<Start>,
}

/// Span of time with one offset from UTC, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tariff) struct Span {
    pub(in crate::tariff) from_s: i64,
    pub(in crate::tariff) until_s: i64,
    pub(in crate::tariff) offset_s: i64,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    at_s: i64,
    offset_s: i64,
}

/// Error for an unknown time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownZone {
    /// Name that was given.
    pub given: String,
}

/// Names of all time zones.
#[must_use]
pub fn zone_names() -> Vec<String> {
    TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect()
}

// === impl Zone ===

impl Zone {
    pub(in crate::tariff) fn find(given: &str) -> Result<Self, UnknownZone> {
        let zone = TimeZoneDatabase::bundled()
            .get(given)
            .map_err(|_| UnknownZone { given: given.to_owned() })?;
        let name = zone.iana_name().unwrap_or(given).into();
        Ok(Self { name, spans: spans(&zone) })
    }

    pub(in crate::tariff) fn name(&self) -> &str {
        &self.name
    }

    /// Span that contains a second.
    pub(in crate::tariff) fn span(&self, at_s: i64) -> Span {
        let next = self.spans.partition_point(|start| start.at_s <= at_s).max(1);
        self.nth(next - 1)
    }

    /// First second at which the zone's clocks show this local time or a later one. Local times are in seconds
    /// since 1970 too. If the clocks skip it, this is the moment of the change; if they show it twice, the first
    /// time.
    pub(in crate::tariff) fn first_at(&self, local_s: i64) -> i64 {
        // No offset from UTC exceeds 26 hours: there is no match before that.
        let earliest = local_s.saturating_sub(26 * 3_600);
        let start = self.spans.partition_point(|start| start.at_s <= earliest).max(1) - 1;
        (start..self.spans.len())
            .map(|index| self.nth(index))
            .find_map(|span| {
                let at_s = local_s.saturating_sub(span.offset_s);
                (at_s < span.until_s).then_some(at_s.max(span.from_s))
            })
            .unwrap_or(i64::MAX)
    }

    fn nth(&self, index: usize) -> Span {
        let Start { at_s, offset_s } = self.spans[index];
        let until_s = self.spans.get(index + 1).map_or(i64::MAX, |start| start.at_s);
        Span { from_s: at_s, until_s, offset_s }
    }
}

/// All spans between the first and the last nanosecond of records.
fn spans(zone: &TimeZone) -> Vec<Start> {
    let (first_s, last_s) = (i64::MIN / SECOND_NS - 1, i64::MAX / SECOND_NS + 1);
    let first = Timestamp::from_second(first_s).unwrap_or(Timestamp::MIN);
    let offset_s = i64::from(zone.to_offset(first).seconds());
    let mut spans = vec![Start { at_s: i64::MIN, offset_s }];
    let changes = zone
        .following(first)
        .map(|change| Start {
            at_s: change.timestamp().as_second(),
            offset_s: i64::from(change.offset().seconds()),
        })
        .take_while(|start| start.at_s <= last_s);
    for change in changes {
        // A change of the zone's abbreviation alone changes no offset.
        if spans.last().is_some_and(|last| last.offset_s != change.offset_s) {
            spans.push(change);
        }
    }
    spans
}

// === impl UnknownZone ===

impl fmt::Display for UnknownZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no time zone: expected an IANA name, such as Europe/Berlin", self.given)
    }
}

impl std::error::Error for UnknownZone {}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;
    use proptest::prelude::*;

    #[test]
    fn berlin_puts_its_clocks_forward_and_back() {
        let zone = Zone::find("Europe/Berlin").unwrap();
        let utc = |text: &str| text.parse::<Timestamp>().unwrap().as_second();
        let forward = utc("2026-03-29T01:00:00Z");
        assert_eq!(zone.span(forward - 1).offset_s, 3_600);
        assert_eq!(zone.span(forward).offset_s, 7_200);
        let local =
            |at: jiff::civil::DateTime| at.to_zoned(TimeZone::UTC).unwrap().timestamp().as_second();
        let skipped = local(date(2026, 3, 29).at(2, 30, 0, 0));
        assert_eq!(zone.first_at(skipped), forward, "02:30 is not shown that day");
        let twice = local(date(2026, 10, 25).at(2, 30, 0, 0));
        assert_eq!(zone.first_at(twice), utc("2026-10-25T00:30:00Z"));
    }

    #[test]
    fn every_zone_can_be_read() {
        let names = zone_names();
        assert!(names.len() > 400);
        for name in names {
            let zone = Zone::find(&name).unwrap();
            assert!(zone.spans.is_sorted_by_key(|start| start.at_s), "{name}");
        }
        assert_eq!(Zone::find("Europe/Berlim").unwrap_err().given, "Europe/Berlim");
    }

    proptest! {
        #[test]
        fn clocks_agree_with_the_calendar_library(at_s in -4_000_000_000_i64..9_000_000_000) {
            for name in ["Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "Africa/Cairo", "Pacific/Apia"] {
                let (zone, theirs) =
                    (Zone::find(name).unwrap(), TimeZoneDatabase::bundled().get(name).unwrap());
                let at = Timestamp::from_second(at_s).unwrap();
                let span = zone.span(at_s);
                prop_assert!(span.from_s <= at_s && at_s < span.until_s);
                prop_assert_eq!(span.offset_s, i64::from(theirs.to_offset(at).seconds()));
                let local_s = at_s + span.offset_s;
                let first = zone.first_at(local_s);
                prop_assert!(first <= at_s);
                prop_assert!(first + zone.span(first).offset_s >= local_s);
                let before = zone.span(first - 1);
                prop_assert!(first - 1 + before.offset_s < local_s || before.from_s == i64::MIN);
            }
        }
    }
}
