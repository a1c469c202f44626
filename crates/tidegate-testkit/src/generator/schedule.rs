use super::driver::ScheduledRequest;
use super::queue::QUEUED_MAX;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Requests that are not due: the driver's next one, and retries.
#[derive(Default)]
pub(super) struct Schedule {
    upcoming: Option<ScheduledRequest>,
    exhausted: bool,
    retries: BinaryHeap<Retry>,
    last_number: u64,
    last_due: Duration,
}

/// Retry; the earliest is the greatest, and with the same time the first.
struct Retry {
    scheduled: ScheduledRequest,
    number: u64,
}

// === impl Schedule ===

impl Schedule {
    /// Removes the earliest request if it is due; `next` supplies the driver's next one.
    pub fn take(
        &mut self,
        now: Duration,
        next: impl FnOnce() -> Option<ScheduledRequest>,
    ) -> Option<ScheduledRequest> {
        if self.upcoming.is_none() && !self.exhausted {
            self.upcoming = next();
            self.exhausted = self.upcoming.is_none();
        }
        if self.next_due()? > now {
            return None;
        }
        let is_driver_first = match (&self.upcoming, self.retries.peek()) {
            (Some(scheduled), Some(later)) => scheduled.due <= later.scheduled.due,
            (upcoming, _) => upcoming.is_some(),
        };
        let scheduled = match is_driver_first {
            true => self.upcoming.take(),
            false => self.retries.pop().map(|later| later.scheduled),
        }?;
        self.last_due = self.last_due.max(scheduled.due);
        Some(scheduled)
    }

    /// Schedules a retry, or returns it if there are too many.
    pub fn reschedule(&mut self, scheduled: ScheduledRequest) -> Result<(), ScheduledRequest> {
        if self.retries.len() >= QUEUED_MAX {
            return Err(scheduled);
        }
        self.last_number += 1;
        self.retries.push(Retry { scheduled, number: self.last_number });
        Ok(())
    }

    pub fn next_due(&self) -> Option<Duration> {
        let later = self.retries.peek().map(|later| later.scheduled.due);
        let upcoming = self.upcoming.as_ref().map(|scheduled| scheduled.due);
        upcoming.into_iter().chain(later).min()
    }

    /// Due time of the last request, once all were taken.
    pub fn last_due(&self) -> Option<Duration> {
        (self.exhausted && self.retries.is_empty()).then_some(self.last_due)
    }

    /// Ends the schedule; returns retries that are not due.
    pub fn drain(&mut self) -> Vec<ScheduledRequest> {
        self.exhausted = true;
        self.upcoming = None;
        std::mem::take(&mut self.retries).into_vec().into_iter().map(|l| l.scheduled).collect()
    }
}

// === impl Retry ===

impl Ord for Retry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.scheduled.due, other.number).cmp(&(self.scheduled.due, self.number))
    }
}

impl PartialOrd for Retry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Retry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Retry {}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheduled(due_ms: u64, id: u64) -> ScheduledRequest {
        ScheduledRequest::new(Duration::from_millis(due_ms), 0, id)
    }

    fn taken(schedule: &mut Schedule, now_ms: u64, own: &mut Vec<ScheduledRequest>) -> Option<u64> {
        schedule.take(Duration::from_millis(now_ms), || own.pop()).map(|scheduled| scheduled.id)
    }

    #[test]
    fn retries_are_ordered_by_time() {
        let mut own = vec![scheduled(30, 3), scheduled(10, 1)];
        let mut schedule = Schedule::default();
        schedule.reschedule(scheduled(20, 2)).unwrap();
        assert_eq!(taken(&mut schedule, 9, &mut own), None);
        assert_eq!(taken(&mut schedule, 25, &mut own), Some(1));
        assert_eq!(taken(&mut schedule, 25, &mut own), Some(2));
        assert_eq!(taken(&mut schedule, 25, &mut own), None);
        assert_eq!(schedule.next_due(), Some(Duration::from_millis(30)));
        assert_eq!(schedule.last_due(), None);
        assert_eq!(taken(&mut schedule, 30, &mut own), Some(3));
        assert_eq!(taken(&mut schedule, 30, &mut own), None);
        assert_eq!(schedule.last_due(), Some(Duration::from_millis(30)));
    }

    #[test]
    fn requests_with_the_same_time_keep_their_order() {
        let mut schedule = Schedule::default();
        for id in 1..=20 {
            schedule.reschedule(scheduled(5, id)).unwrap();
        }
        let order: Vec<u64> =
            (0..20).filter_map(|_| taken(&mut schedule, 5, &mut vec![])).collect();
        assert_eq!(order, (1..=20).collect::<Vec<_>>());
    }
}
