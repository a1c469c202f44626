use super::config::ExecutorConfig;
use super::contract::{CapacityReport, DeletedExecution, Reserved, Started};
use super::counts::WorkerCounts;
use super::error::{ExecuteError, ReserveError};
use super::execution::Execution;
use super::held_slot::HeldSlot;
use super::request::{Wanted, check_reserve, reservation_id};
use super::runner::Runner;
use super::table::Table;
use super::work::{StopSignal, StopWhy};
use super::{ExecuteBody, ExecutionView, ReserveBody};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate::capacity::{Cancelled, ExecuteRefused, ExecutorSlots, ReserveRefused};
use tidegate::task::{Ending, ExecutionKey};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// The longest that one question is held back.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// So many slots, and what runs in them. Cheap to clone; the same from any thread.
///
/// Whether something is taken is decided in one step, before anything is waited for: no race admits one more.
#[derive(Clone)]
pub struct Executor {
    shared: Arc<Shared>,
}

/// What all handles of one executor share.
pub(super) struct Shared {
    pub(super) config: ExecutorConfig,
    pub(super) runner: Runner,
    runtime: Handle,
    began: Instant,
    table: Mutex<Table>,
    /// The timer has to look earlier than it means to.
    pub(super) earlier: Arc<Notify>,
    /// An execution has ended.
    pub(super) ended: Notify,
}

// === impl Executor ===

impl Executor {
    /// Starts one whose executions run on that runtime, as long as it does.
    #[must_use]
    pub fn start(config: ExecutorConfig, runner: Runner, runtime: Handle) -> Self {
        let slots = ExecutorSlots::new(config.max_concurrent, config.fence_floor);
        let table = Table::new(slots, config.past_max, config.past_bytes_max);
        let shared = Arc::new(Shared {
            config,
            runner,
            runtime,
            began: Instant::now(),
            table: Mutex::new(table),
            earlier: Arc::new(Notify::new()),
            ended: Notify::new(),
        });
        shared.runtime.spawn(super::timer::keep_time(Arc::downgrade(&shared)));
        Self { shared }
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.shared.config.id
    }

    /// How full it is, and what it can do.
    #[must_use]
    pub fn capacity(&self) -> CapacityReport {
        let Shared { config, runner, .. } = &*self.shared;
        let table = self.shared.lock();
        let occupancy = table.slots.occupancy(self.shared.now());
        let executions = table.slots.running().map(|(key, _)| key.to_string()).collect();
        let draining = table.ends_at.is_some();
        drop(table);
        CapacityReport {
            executor_id: config.id.clone(),
            can_accept: occupancy.free() > 0 && !draining,
            running: occupancy.running,
            max_concurrent: occupancy.max,
            available_slots: occupancy.free(),
            reserved: occupancy.reserved,
            kind: runner.kind().to_owned(),
            runtimes: runner.runtimes().to_vec(),
            sandbox: runner.sandbox(),
            executions: Some(executions),
            draining,
        }
    }

    /// Starts an execution in a free slot, or in the one that was reserved for it. The same again gets the same
    /// answer, and starts nothing.
    ///
    /// # Errors
    ///
    /// When it can't be as asked, when there is no slot for it, or when the executor is about to end.
    pub fn execute(&self, body: ExecuteBody) -> Result<Started, ExecuteError> {
        let done = self.try_execute(body);
        if let Err(error) = &done {
            self.shared.lock().counts.refuse(error.reason());
        }
        done
    }

    fn try_execute(&self, body: ExecuteBody) -> Result<Started, ExecuteError> {
        let shared = &self.shared;
        let wanted = Wanted::check(body, &shared.config, &shared.runner)?;
        let Wanted { work, fingerprint, reservation, lease } = wanted;
        let key = &work.key;
        let mut table = shared.lock();
        let now = shared.now();
        table.expire_reservations(now);
        table.look(now);
        if let Some(retry_after) = table.ends_in(now).filter(|_| !table.known.contains_key(key)) {
            return Err(ExecuteError::Draining { retry_after });
        }
        let granted = match table.slots.execute(key, fingerprint, reservation, lease, now) {
            Ok(granted) => granted,
            Err(ExecuteRefused::Full) => {
                return Err(ExecuteError::Full { retry_after: table.retry_after() });
            }
            Err(refused) => return Err(ExecuteError::Refused(refused)),
        };
        let fence = granted.fence;
        let container_id = key.to_string();
        if granted.first {
            let (switch, stop) = StopSignal::new();
            let output_max = shared.config.output_bytes_max;
            let execution = Execution::new(key.clone(), fence, lease, output_max, switch);
            let execution = Arc::new(execution);
            table.known.insert(key.clone(), Arc::clone(&execution));
            table.counts.started += 1;
            let earlier = lease.is_some_and(|lease| table.is_earlier(now + lease));
            drop(table);
            if earlier {
                shared.earlier.notify_one();
            }
            let slot = HeldSlot::new(Arc::clone(shared), execution);
            shared.runtime.spawn(slot.run(work, stop));
        } else {
            table.counts.repeated += 1;
        }
        Ok(Started { status: "started".to_owned(), container_id, fence })
    }

    /// Keeps a slot for an execution that is to come. The same again gets the same slot.
    ///
    /// # Errors
    ///
    /// When there is none, when the execution has come already, or when the executor is about to end.
    pub fn reserve(&self, body: &ReserveBody) -> Result<Reserved, ReserveError> {
        let done = self.try_reserve(body);
        if let Err(error) = &done {
            self.shared.lock().counts.refuse(error.reason());
        }
        done
    }

    fn try_reserve(&self, body: &ReserveBody) -> Result<Reserved, ReserveError> {
        let (key, ttl) = check_reserve(body)?;
        let shared = &self.shared;
        let mut table = shared.lock();
        let now = shared.now();
        table.expire_reservations(now);
        table.look(now);
        if let Some(retry_after) = table.ends_in(now) {
            return Err(ReserveError::Draining { retry_after });
        }
        let before = table.slots.occupancy(now).reserved;
        let held = match table.slots.reserve(&key, ttl, now) {
            Ok(held) => held,
            Err(ReserveRefused::Full) => {
                return Err(ReserveError::Full { retry_after: table.retry_after() });
            }
            Err(refused) => return Err(ReserveError::Refused(refused)),
        };
        let made = table.slots.occupancy(now).reserved - before;
        table.counts.reserved += u64::from(made);
        if table.is_earlier(held.expires_at) {
            shared.earlier.notify_one();
        }
        let left = held.expires_at.saturating_sub(now);
        let expires_in_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let reservation_id = reservation_id(held.fence);
        Ok(Reserved { reservation_id, fence: held.fence, expires_in_ms })
    }

    /// What became of an execution; `None` when it is not known, or not any more.
    ///
    /// With a wait the answer is held back until its state is another or it has written something after that
    /// place, but not for so long that its lease could run out meanwhile. Asking renews the lease, unless another
    /// fence is given than its own.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is given up: ask again from the same place.
    pub async fn execution(
        &self,
        key: &ExecutionKey,
        fence: Option<u64>,
        wait: Duration,
        after: u64,
    ) -> Option<ExecutionView> {
        let execution = self.shared.renewed(key, fence)?;
        let half_lease = execution.lease.map_or(WAIT_MAX, |lease| lease / 2);
        let wait = wait.min(WAIT_MAX).min(half_lease);
        if !wait.is_zero() {
            let _ = timeout(wait, execution.news(after)).await;
            self.shared.renewed(key, fence);
        }
        Some(execution.view(after))
    }

    /// Stops an execution, or sees to it that it is not started when it comes.
    pub fn cancel(&self, key: &ExecutionKey) -> DeletedExecution {
        let mut table = self.shared.lock();
        let was = table.slots.cancel(key);
        let execution = table.known.get(key).cloned();
        drop(table);
        let was = match was {
            Cancelled::Running { .. } => "stopping",
            Cancelled::Ended => "ended",
            Cancelled::Ahead => "unknown",
        };
        if let Some(execution) = execution.filter(|execution| !execution.has_ended()) {
            execution.stop(StopWhy::Cancelled);
        }
        DeletedExecution { id: key.to_string(), was: was.to_owned() }
    }

    /// What it has done so far.
    #[must_use]
    pub fn counts(&self) -> WorkerCounts {
        let mut table = self.shared.lock();
        table.expire_reservations(self.shared.now());
        table.counts.clone()
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }
}

// === impl Shared ===

impl Shared {
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// When that is by the clock that timers wait by.
    pub(super) fn instant(&self, at: Duration) -> Instant {
        self.began + at
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing that holds it panics; if it did, each table in it would still be whole.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn renewed(&self, key: &ExecutionKey, fence: Option<u64>) -> Option<Arc<Execution>> {
        let mut table = self.lock();
        table.slots.renew(key, fence, self.now());
        table.known.get(key).cloned()
    }

    /// An execution is over. Only the first word about it counts.
    pub(super) fn end(&self, execution: &Arc<Execution>, ending: Ending) {
        self.lock().end(execution, ending);
        execution.tell();
        self.ended.notify_waiters();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The timer finds nobody to keep time for, and ends.
        self.earlier.notify_one();
    }
}
