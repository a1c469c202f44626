//! Faults: their begin and end.

use super::model::{Broken, State, Trouble};
use super::simulation::{Simulation, Todo, nanos};
use crate::agenda::Time;
use crate::scenario::{Fault, FaultKind};

impl Simulation<'_> {
    /// A fault begins or ends.
    pub(super) fn fault(&mut self, index: usize) -> Result<(), Broken> {
        let fault = &self.scenario.faults[index];
        for number in (0..self.settings.upstreams.count).filter(|number| fault.hits(*number)) {
            let upstream = usize::from(number);
            let was = self.upstreams[upstream].trouble;
            let is = Trouble::of(&self.scenario.faults, number, self.now);
            self.upstreams[upstream].trouble = is;
            // Who dies cuts what it had; when a cut network is back, what was asked is lost.
            if (is.dead && !was.dead) || (was.cut && !is.cut) {
                self.lose_all(upstream);
            }
            self.todo.push_back(Todo::Work(upstream));
        }
        Ok(())
    }

    fn lose_all(&mut self, upstream: usize) {
        self.upstreams[upstream].forget_all();
        for id in self.requests.numbers() {
            let request = self.requests.get(id);
            if request.state == State::Sent && usize::from(request.upstream) == upstream {
                self.broke(id);
            }
        }
    }
}

// === impl Trouble ===

impl Trouble {
    /// Returns the trouble of an upstream at a time, by all active faults. Of one kind the latest counts, and the
    /// earlier one again when that is over, as in the mock server.
    fn of(faults: &[Fault], upstream: u16, now: Time) -> Self {
        let is_on = |fault: &&Fault| (nanos(fault.from_s)..nanos(fault.until_s)).contains(&now);
        let mut on: Vec<_> =
            faults.iter().filter(|fault| fault.hits(upstream)).filter(is_on).collect();
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
