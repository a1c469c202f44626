use super::driver::Shot;
use super::line::HELD_MAX;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

/// What is not due yet: the driver's next request, and those it handed back.
#[derive(Default)]
pub(super) struct Schedule {
    upcoming: Option<Shot>,
    exhausted: bool,
    handed_back: BinaryHeap<Later>,
    numbers: u64,
    last_due: Duration,
}

/// Ordered so that the earliest is the greatest, and of two with one time the one that came first.
struct Later {
    shot: Shot,
    number: u64,
}

// === impl Schedule ===

impl Schedule {
    /// Takes the earliest request if it is due at `now`; `next` is asked for more when needed.
    pub fn take(&mut self, now: Duration, next: impl FnOnce() -> Option<Shot>) -> Option<Shot> {
        if self.upcoming.is_none() && !self.exhausted {
            self.upcoming = next();
            self.exhausted = self.upcoming.is_none();
        }
        if self.next_due()? > now {
            return None;
        }
        let is_driver_first = match (&self.upcoming, self.handed_back.peek()) {
            (Some(shot), Some(later)) => shot.due <= later.shot.due,
            (upcoming, _) => upcoming.is_some(),
        };
        let shot = match is_driver_first {
            true => self.upcoming.take(),
            false => self.handed_back.pop().map(|later| later.shot),
        }?;
        self.last_due = self.last_due.max(shot.due);
        Some(shot)
    }

    /// Keeps it until it is due, or gives it back when too many are kept already.
    pub fn hand_back(&mut self, shot: Shot) -> Result<(), Shot> {
        if self.handed_back.len() >= HELD_MAX {
            return Err(shot);
        }
        self.numbers += 1;
        self.handed_back.push(Later { shot, number: self.numbers });
        Ok(())
    }

    pub fn next_due(&self) -> Option<Duration> {
        let later = self.handed_back.peek().map(|later| later.shot.due);
        let upcoming = self.upcoming.as_ref().map(|shot| shot.due);
        upcoming.into_iter().chain(later).min()
    }

    /// When the last one was due, once nothing more is to come.
    pub fn last_due(&self) -> Option<Duration> {
        (self.exhausted && self.handed_back.is_empty()).then_some(self.last_due)
    }

    /// What was handed back and is not due yet, and nothing more from the driver.
    pub fn drain(&mut self) -> Vec<Shot> {
        self.exhausted = true;
        self.upcoming = None;
        std::mem::take(&mut self.handed_back).into_vec().into_iter().map(|l| l.shot).collect()
    }
}

// === impl Later ===

impl Ord for Later {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.shot.due, other.number).cmp(&(self.shot.due, self.number))
    }
}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Later {}

#[cfg(test)]
mod tests {
    use super::*;

    fn shot(due_ms: u64, id: u64) -> Shot {
        Shot::new(Duration::from_millis(due_ms), 0, id)
    }

    fn taken(schedule: &mut Schedule, now_ms: u64, own: &mut Vec<Shot>) -> Option<u64> {
        schedule.take(Duration::from_millis(now_ms), || own.pop()).map(|shot| shot.id)
    }

    #[test]
    fn what_was_handed_back_takes_its_turn_by_time() {
        let mut own = vec![shot(30, 3), shot(10, 1)];
        let mut schedule = Schedule::default();
        schedule.hand_back(shot(20, 2)).unwrap();
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
    fn those_of_one_time_keep_their_order() {
        let mut schedule = Schedule::default();
        for id in 1..=20 {
            schedule.hand_back(shot(5, id)).unwrap();
        }
        let order: Vec<u64> =
            (0..20).filter_map(|_| taken(&mut schedule, 5, &mut vec![])).collect();
        assert_eq!(order, (1..=20).collect::<Vec<_>>());
    }
}
