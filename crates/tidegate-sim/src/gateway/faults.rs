//! What goes wrong, and is over again.

use super::check::Broken;
use super::request::State;
use super::simulation::{Simulation, Todo, nanos};
use super::worker::Trouble;
use crate::agenda::Time;
use crate::scenario::{Fault, FaultKind};

impl Simulation<'_> {
    /// A fault begins or ends.
    pub(super) fn fault(&mut self, index: usize) -> Result<(), Broken> {
        let fault = &self.scenario.faults[index];
        for number in (0..self.settings.workers.count).filter(|number| fault.hits(*number)) {
            let worker = usize::from(number);
            let was = self.workers[worker].trouble;
            let is = Trouble::of(&self.scenario.faults, number, self.now);
            self.workers[worker].trouble = is;
            // Who dies cuts what it had; when a cut network is back, what was asked is lost.
            if (is.dead && !was.dead) || (was.cut && !is.cut) {
                self.lose_all(worker);
            }
            self.todo.push_back(Todo::Work(worker));
        }
        Ok(())
    }

    fn lose_all(&mut self, worker: usize) {
        self.workers[worker].forget_all();
        for id in self.requests.numbers() {
            let request = self.requests.get(id);
            if request.state == State::Sent && usize::from(request.worker) == worker {
                self.broke(id);
            }
        }
    }
}

// === impl Trouble ===

impl Trouble {
    /// What is wrong with a worker at a time, by all faults that are on then. Of one kind the one that began last
    /// is what stands, and what began before it stands again when that is over: as mocks have it.
    fn of(faults: &[Fault], worker: u16, now: Time) -> Self {
        let is_on = |fault: &&Fault| (nanos(fault.from_s)..nanos(fault.until_s)).contains(&now);
        let mut on: Vec<_> =
            faults.iter().filter(|fault| fault.hits(worker)).filter(is_on).collect();
        on.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        on.into_iter().fold(Self::NONE, Self::with)
    }

    fn with(self, fault: &Fault) -> Self {
        match fault.kind {
            FaultKind::Slow => Self { slow: fault.factor.unwrap_or(1.0), ..self },
            FaultKind::Dead => Self { dead: true, ..self },
            FaultKind::Cut => Self { cut: true, ..self },
            FaultKind::Fails => Self { fails: fault.share.unwrap_or(0.0), ..self },
            FaultKind::Capacity => Self { capacity: fault.share.unwrap_or(1.0), ..self },
            FaultKind::Blocked | FaultKind::Loss | FaultKind::Delay | FaultKind::ManagerDead => {
                self
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: FaultKind, amount: f64, from_s: f64, until_s: f64) -> Fault {
        Fault {
            kind,
            from_s,
            until_s,
            at: vec![1],
            stage: None,
            factor: Some(amount),
            share: Some(amount),
            added_ms: None,
        }
    }

    fn at(faults: &[Fault], now_s: f64) -> Trouble {
        Trouble::of(faults, 1, nanos(now_s))
    }

    #[test]
    fn what_began_before_stands_again_when_what_is_over_it_ends() {
        let faults =
            [fault(FaultKind::Slow, 8.0, 0.0, 10.0), fault(FaultKind::Slow, 2.0, 4.0, 6.0)];
        let slow = |now_s| at(&faults, now_s).slow;
        assert_eq!([slow(3.9), slow(4.0), slow(6.0), slow(10.0)], [8.0, 2.0, 8.0, 1.0]);
        let dead = [fault(FaultKind::Dead, 1.0, 0.0, 5.0), fault(FaultKind::Dead, 1.0, 4.0, 8.0)];
        assert!(at(&dead, 5.0).dead && at(&dead, 7.9).dead && !at(&dead, 8.0).dead);
    }

    #[test]
    fn kinds_stand_beside_each_other_and_others_have_none() {
        let faults =
            [fault(FaultKind::Capacity, 0.5, 0.0, 9.0), fault(FaultKind::Cut, 1.0, 1.0, 2.0)];
        let trouble = at(&faults, 1.5);
        assert_eq!((trouble.capacity, trouble.cut), (0.5, true));
        assert_eq!(Trouble::of(&faults, 0, nanos(1.5)), Trouble::NONE);
    }
}
