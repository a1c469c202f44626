use crate::failure::Failure;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tidegate_server::tasks::executor::{ExecutorConfig, MockRunner, Runner, Worker, WorkerError};

/// Time within which the port of a killed executor must be free.
const FREE_WITHIN: Duration = Duration::from_secs(5);

/// Mock executors with one slot each, reached over HTTP.
pub struct ExecutorPool {
    executors: Mutex<Vec<PooledExecutor>>,
    takes: Duration,
}

struct PooledExecutor {
    number: usize,
    address: SocketAddr,
    worker: Option<Worker>,
    /// Totals of killed instances.
    past: Totals,
}

/// Counts of executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub started: u64,
    pub ended: u64,
    /// Submissions and reservations that found no slot.
    pub refused: u64,
}

// === impl ExecutorPool ===

impl ExecutorPool {
    pub fn start(executors: u32, takes: Duration) -> Result<Self, Failure> {
        let executors = (0..executors as usize).map(|number| {
            let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let worker = start(number, free, takes).map_err(Failure::runtime)?;
            let (address, worker) = (worker.address(), Some(worker));
            Ok::<_, Failure>(PooledExecutor { number, address, worker, past: Totals::default() })
        });
        Ok(Self { executors: Mutex::new(executors.collect::<Result<_, _>>()?), takes })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.lock().iter().map(|executor| executor.address).collect()
    }

    /// Totals of all executors, including killed instances.
    pub fn totals(&self) -> Totals {
        let mut sum = Totals::default();
        for executor in self.lock().iter() {
            sum.add(executor.past);
            sum.add(executor.worker.as_ref().map(Totals::of).unwrap_or_default());
        }
        sum
    }

    /// Kills an executor and its executions.
    pub fn kill(&self, number: usize) {
        if let Some(executor) = self.lock().get_mut(number)
            && let Some(worker) = executor.worker.take()
        {
            executor.past.add(Totals::of(&worker));
            // A drop ends the executor and its executions at once.
            drop(worker);
        }
    }

    /// Restarts an executor at the same address, with no executions.
    pub fn revive(&self, number: usize) -> Result<(), Failure> {
        let began = Instant::now();
        loop {
            let mut executors = self.lock();
            let Some(executor) =
                executors.get_mut(number).filter(|executor| executor.worker.is_none())
            else {
                return Ok(());
            };
            match start(executor.number, executor.address, self.takes) {
                Ok(worker) => {
                    executor.worker = Some(worker);
                    return Ok(());
                }
                // The killed executor may still hold its port.
                Err(WorkerError::Bind { .. }) if began.elapsed() < FREE_WITHIN => {}
                Err(error) => return Err(Failure::runtime(error)),
            }
            drop(executors);
            sleep(Duration::from_millis(10));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<PooledExecutor>> {
        // No holder of the lock panics; if one did, each entry would still be valid.
        self.executors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start(number: usize, at: SocketAddr, takes: Duration) -> Result<Worker, WorkerError> {
    let runner = Runner::Mock(MockRunner::new(takes, Vec::new()));
    Worker::start(at, ExecutorConfig::new(format!("executor-{number}"), 1), runner)
}

// === impl Totals ===

impl Totals {
    fn of(worker: &Worker) -> Self {
        let counts = worker.executor().counts();
        Self {
            started: counts.started,
            ended: counts.ended_total(),
            refused: counts.refused_full(),
        }
    }

    fn add(&mut self, other: Self) {
        self.started += other.started;
        self.ended += other.ended;
        self.refused += other.refused;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_server::tasks::execution::ExecuteBody;

    #[test]
    fn a_restarted_executor_keeps_its_address_and_totals() {
        let pool = ExecutorPool::start(2, Duration::from_secs(60)).unwrap();
        let addresses = pool.addresses();
        let execute = |name: &str| {
            let executors = pool.lock();
            let body = ExecuteBody {
                eval_id: name.to_owned(),
                code: "work".to_owned(),
                attempt: 1,
                ..ExecuteBody::default()
            };
            executors[0].worker.as_ref().unwrap().executor().execute(body).is_ok()
        };
        assert!(execute("one"));
        assert!(!execute("two"), "it has one slot");
        pool.kill(0);
        pool.kill(0);
        pool.revive(0).unwrap();
        assert!(execute("two"), "it is empty");
        assert_eq!(pool.totals(), Totals { started: 2, ended: 0, refused: 1 });
        assert_eq!(pool.addresses(), addresses);
    }
}
