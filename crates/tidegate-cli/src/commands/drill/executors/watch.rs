use super::crew::Crew;
use super::node::{Node, Plan};
use super::times::Times;
use crate::commands::until_signal::failed;
use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tidegate_sim::scenario::{Fault, FaultKind};

/// How often is looked.
const EVERY: Duration = Duration::from_millis(20);

/// The manager, while there is one.
pub type Managed = Arc<Mutex<Option<(Node, Plan)>>>;

/// Kills and starts what the scenario says, and looks now and then at what the executors have refused.
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<(f64, u64)>, Failure>>,
}

struct Watched {
    faults: Vec<Fault>,
    on: Vec<bool>,
    crew: Arc<Crew>,
    managed: Option<Managed>,
    plan: Option<Plan>,
    executors: u16,
}

// === impl Watch ===

impl Watch {
    /// From the start of the load, which is now.
    pub fn start(
        faults: &[Fault],
        times: Times,
        crew: &Arc<Crew>,
        managed: Option<Managed>,
    ) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let executors = crew.addresses().len() as u16;
        let mut watched = Watched {
            faults: faults.to_vec(),
            on: vec![false; faults.len()],
            crew: Arc::clone(crew),
            managed,
            plan: None,
            executors,
        };
        let began = Instant::now();
        let look = move || {
            let mut seen = Vec::new();
            loop {
                let over = stopped.load(Ordering::Acquire);
                // When it ends early, what was killed is needed again all the same.
                let now_s = if over { f64::INFINITY } else { times.scenario_s(began.elapsed()) };
                watched.set(now_s)?;
                seen.push((times.scenario_s(began.elapsed()), watched.crew.totals().refused));
                if over {
                    return Ok(seen);
                }
                thread::sleep(EVERY);
            }
        };
        let thread = thread::Builder::new().name("tidegate-faults".to_owned()).spawn(look);
        Ok(Self { stop, thread: thread.map_err(failed)? })
    }

    /// Ends all faults. With how many submissions were refused until when, in the scenario's seconds.
    pub fn end(self) -> Result<Vec<(f64, u64)>, Failure> {
        self.stop.store(true, Ordering::Release);
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(Failure::Runtime("what makes the faults failed".to_owned())))
    }
}

// === impl Watched ===

impl Watched {
    fn set(&mut self, now_s: f64) -> Result<(), Failure> {
        for index in 0..self.faults.len() {
            let is_on = self.faults[index].is_on(now_s);
            if std::mem::replace(&mut self.on[index], is_on) == is_on {
                continue;
            }
            let fault = self.faults[index].clone();
            match fault.kind {
                FaultKind::Dead => self.executors(&fault, is_on)?,
                FaultKind::ManagerDead if fault.hits(0) => self.manager(is_on)?,
                // Nothing real loses messages or delays them here.
                _ => {}
            }
        }
        Ok(())
    }

    fn executors(&self, fault: &Fault, is_on: bool) -> Result<(), Failure> {
        for number in (0..self.executors).filter(|number| fault.hits(*number)) {
            match is_on {
                true => self.crew.kill(usize::from(number)),
                false => self.crew.revive(usize::from(number))?,
            }
        }
        Ok(())
    }

    fn manager(&mut self, is_on: bool) -> Result<(), Failure> {
        let Some(managed) = &self.managed else { return Ok(()) };
        let mut there = managed.lock().unwrap_or_else(PoisonError::into_inner);
        match (is_on, there.take()) {
            (true, Some((node, plan))) => {
                self.plan = Some(plan);
                node.end();
            }
            (false, None) => {
                if let Some(mut plan) = self.plan.take() {
                    *there = Some((plan.start()?, plan));
                }
            }
            (_, unchanged) => *there = unchanged,
        }
        Ok(())
    }
}
