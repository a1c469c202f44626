use super::node::Plan;
use super::pool::ExecutorPool;
use super::times::Times;
use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tidegate_server::node::Node;
use tidegate_sim::scenario::{Fault, FaultKind};

/// Interval between two checks.
const INTERVAL: Duration = Duration::from_millis(20);

/// The manager; `None` while it is down.
pub type SharedNode = Arc<Mutex<Option<(Node, Plan)>>>;

/// Thread that kills and restarts executors and the manager, and samples the executors' refusals.
pub struct FaultInjector {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<(f64, u64)>, Failure>>,
}

/// State of the thread.
struct Injection {
    faults: Vec<Fault>,
    on: Vec<bool>,
    pool: Arc<ExecutorPool>,
    node: Option<SharedNode>,
    plan: Option<Plan>,
    executors: u16,
}

// === impl FaultInjector ===

impl FaultInjector {
    /// Starts with the load: fault times count from now.
    pub fn start(
        faults: &[Fault],
        times: Times,
        pool: &Arc<ExecutorPool>,
        node: Option<SharedNode>,
    ) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let executors = pool.addresses().len() as u16;
        let mut injection = Injection {
            faults: faults.to_vec(),
            on: vec![false; faults.len()],
            pool: Arc::clone(pool),
            node,
            plan: None,
            executors,
        };
        let began = Instant::now();
        let run = move || {
            let mut seen = Vec::new();
            loop {
                let over = stopped.load(Ordering::Acquire);
                // At an early end everything that was killed is restarted.
                let now_s = if over { f64::INFINITY } else { times.scenario_s(began.elapsed()) };
                injection.set(now_s)?;
                seen.push((times.scenario_s(began.elapsed()), injection.pool.totals().refused));
                if over {
                    return Ok(seen);
                }
                thread::sleep(INTERVAL);
            }
        };
        let thread = thread::Builder::new().name("tidegate-faults".to_owned()).spawn(run);
        Ok(Self { stop, thread: thread.map_err(Failure::runtime)? })
    }

    /// Ends all faults. Returns refused submissions over time, in scenario seconds.
    pub fn end(self) -> Result<Vec<(f64, u64)>, Failure> {
        self.stop.store(true, Ordering::Release);
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(Failure::Runtime("the fault injector failed".to_owned())))
    }
}

// === impl Injection ===

impl Injection {
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
                // Loss and delay are simulated only.
                _ => {}
            }
        }
        Ok(())
    }

    fn executors(&self, fault: &Fault, is_on: bool) -> Result<(), Failure> {
        for number in (0..self.executors).filter(|number| fault.hits(*number)) {
            match is_on {
                true => self.pool.kill(usize::from(number)),
                false => self.pool.revive(usize::from(number))?,
            }
        }
        Ok(())
    }

    fn manager(&mut self, is_on: bool) -> Result<(), Failure> {
        let Some(node) = &self.node else { return Ok(()) };
        let mut current = node.lock().unwrap_or_else(PoisonError::into_inner);
        match (is_on, current.take()) {
            (true, Some((running, plan))) => {
                self.plan = Some(plan);
                running.shutdown();
            }
            (false, None) => {
                if let Some(mut plan) = self.plan.take() {
                    *current = Some((plan.start()?, plan));
                }
            }
            (_, unchanged) => *current = unchanged,
        }
        Ok(())
    }
}
