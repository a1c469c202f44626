//! What goes wrong, and is over again.

use super::check::Broken;
use super::request::State;
use super::simulation::{Simulation, Todo};
use super::worker::Trouble;
use crate::scenario::{Fault, FaultKind};

impl Simulation<'_> {
    /// A fault begins or ends.
    pub(super) fn fault(&mut self, index: usize, on: bool) -> Result<(), Broken> {
        let fault = &self.scenario.faults[index];
        for number in (0..self.settings.workers.count).filter(|number| fault.hits(*number)) {
            let worker = usize::from(number);
            let was = self.workers[worker].trouble;
            self.workers[worker].trouble = was.with(fault, on);
            let is = self.workers[worker].trouble;
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
    /// The same with this fault, or without it.
    fn with(self, fault: &Fault, on: bool) -> Self {
        let or_none = |value: Option<f64>, none: f64| if on { value.unwrap_or(none) } else { none };
        match fault.kind {
            FaultKind::Slow => Self { slow: or_none(fault.factor, 1.0), ..self },
            FaultKind::Dead => Self { dead: on, ..self },
            FaultKind::Cut => Self { cut: on, ..self },
            FaultKind::Fails => Self { fails: or_none(fault.share, 0.0), ..self },
            FaultKind::Capacity => Self { capacity: or_none(fault.share, 1.0), ..self },
            FaultKind::Blocked | FaultKind::Loss | FaultKind::Delay | FaultKind::ManagerDead => {
                self
            }
        }
    }
}
