use super::Days;
use super::segment::{Segment, nanoseconds, seconds};
use super::zone::Zone;

pub(in crate::tariff) const DAY_MINUTES: u16 = 24 * 60;
const WEEK_MINUTES: u16 = 7 * DAY_MINUTES;
const DAY_S: i64 = 86_400;
const WEEK_S: i64 = 7 * DAY_S;

/// Rates by minute of the local week; the week begins on Monday.
#[derive(Debug)]
pub(in crate::tariff) struct Week {
    /// Start minute and rate of each run. The first starts at 0.
    runs: Vec<(u16, Option<u16>)>,
}

/// Week under construction, by minute.
pub(in crate::tariff) struct WeekPlan(Vec<Option<u16>>);

/// Overlap of two windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tariff) struct Overlap {
    pub(in crate::tariff) with: u16,
    /// First common minute of the week.
    pub(in crate::tariff) minute: u16,
}

// === impl WeekPlan ===

impl WeekPlan {
    pub(in crate::tariff) fn new() -> Self {
        Self(vec![None; usize::from(WEEK_MINUTES)])
    }

    /// Assigns the minutes `from .. to` of these days; if `to` is not after `from`, into the next day. Minutes
    /// that are assigned already stay, and the first of them is returned.
    pub(in crate::tariff) fn take(
        &mut self,
        days: Days,
        from: u16,
        to: u16,
        rate: u16,
    ) -> Option<Overlap> {
        let length = if to > from { to - from } else { DAY_MINUTES - from + to };
        let mut overlap = None;
        for day in days.iter() {
            let start = u16::from(day) * DAY_MINUTES + from;
            for minute in (start..start + length).map(|minute| minute % WEEK_MINUTES) {
                match &mut self.0[usize::from(minute)] {
                    Some(with) => overlap = overlap.or(Some(Overlap { with: *with, minute })),
                    free => *free = Some(rate),
                }
            }
        }
        overlap
    }

    /// Assigns all remaining minutes.
    pub(in crate::tariff) fn fill(&mut self, rate: u16) {
        self.0.iter_mut().filter(|free| free.is_none()).for_each(|free| *free = Some(rate));
    }

    pub(in crate::tariff) fn finish(self) -> Week {
        let mut runs: Vec<(u16, Option<u16>)> = Vec::new();
        for (minute, rate) in (0..).zip(self.0) {
            if runs.last().is_none_or(|(_, last)| *last != rate) {
                runs.push((minute, rate));
            }
        }
        Week { runs }
    }
}

// === impl Week ===

impl Week {
    /// Rate at a time, and the segment around it with the same rate.
    pub(in crate::tariff) fn at(&self, zone: &Zone, at_ns: i64) -> (Option<u16>, Segment) {
        if let [(_, rate)] = self.runs[..] {
            return (rate, Segment::ALWAYS);
        }
        let at_s = seconds(at_ns);
        let span = zone.span(at_s);
        // 1970 began on a Thursday, three days after a Monday.
        let second = (at_s + span.offset_s + 3 * DAY_S).rem_euclid(WEEK_S);
        let next = self.runs.partition_point(|(minute, _)| i64::from(*minute) * 60 <= second);
        let (from, rate) = self.runs[next.max(1) - 1];
        let until = self.runs.get(next).map_or(WEEK_MINUTES, |(minute, _)| *minute);
        let monday_s = at_s - second;
        let run = Segment {
            from_ns: nanoseconds(monday_s + i64::from(from) * 60),
            until_ns: nanoseconds(monday_s + i64::from(until) * 60),
        };
        // The offset is constant only within the span.
        (rate, run.and(span.into()))
    }

    /// True if a rate is used at any time.
    pub(in crate::tariff) fn has(&self, rate: u16) -> bool {
        self.runs.iter().any(|(_, held)| *held == Some(rate))
    }

    /// Runs of minutes of the week without a rate.
    pub(in crate::tariff) fn gaps(&self) -> Vec<(u16, u16)> {
        let ends = self.runs.iter().skip(1).map(|(minute, _)| *minute).chain([WEEK_MINUTES]);
        let runs = self.runs.iter().zip(ends);
        runs.filter(|((_, rate), _)| rate.is_none()).map(|((from, _), to)| (*from, to)).collect()
    }
}
