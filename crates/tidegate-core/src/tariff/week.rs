use super::Days;
use super::segment::{Segment, nanoseconds, seconds};
use super::zone::Zone;

pub(super) const DAY_MINUTES: u16 = 24 * 60;
const WEEK_MINUTES: u16 = 7 * DAY_MINUTES;
const DAY_S: i64 = 86_400;
const WEEK_S: i64 = 7 * DAY_S;

/// Which rate holds in which minute of the week, by the clocks on the wall; the week begins on Monday.
#[derive(Debug)]
pub(super) struct Week {
    /// Where a run of minutes begins, and its rate. The first begins at 0.
    runs: Vec<(u16, Option<u16>)>,
}

/// A week that is being put together, minute by minute.
pub(super) struct WeekPlan(Vec<Option<u16>>);

/// Two windows that have a minute in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overlap {
    pub(super) with: u16,
    /// The first common minute of the week.
    pub(super) minute: u16,
}

// === impl WeekPlan ===

impl WeekPlan {
    pub(super) fn new() -> Self {
        Self(vec![None; usize::from(WEEK_MINUTES)])
    }

    /// Takes the minutes `from .. to` of these days; when `to` is not after `from`, into the day after. Minutes
    /// that are taken already stay as they are, and the first of them is told.
    pub(super) fn take(&mut self, days: Days, from: u16, to: u16, rate: u16) -> Option<Overlap> {
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

    /// Takes all minutes that are left.
    pub(super) fn fill(&mut self, rate: u16) {
        self.0.iter_mut().filter(|free| free.is_none()).for_each(|free| *free = Some(rate));
    }

    pub(super) fn finish(self) -> Week {
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
    /// The rate at a time, and for how long around it.
    pub(super) fn at(&self, zone: &Zone, at_ns: i64) -> (Option<u16>, Segment) {
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
        // The clocks run evenly only until they are changed.
        (rate, run.and(span.into()))
    }

    /// Whether a rate holds at any time.
    pub(super) fn has(&self, rate: u16) -> bool {
        self.runs.iter().any(|(_, held)| *held == Some(rate))
    }

    /// The runs of minutes of the week that have no rate.
    pub(super) fn gaps(&self) -> Vec<(u16, u16)> {
        let ends = self.runs.iter().skip(1).map(|(minute, _)| *minute).chain([WEEK_MINUTES]);
        let runs = self.runs.iter().zip(ends);
        runs.filter(|((_, rate), _)| rate.is_none()).map(|((from, _), to)| (*from, to)).collect()
    }
}
