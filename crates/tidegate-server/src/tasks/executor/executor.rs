use super::checked_request::{CheckedExecute, check_reserve, reservation_id};
use super::config::ExecutorConfig;
use super::counts::WorkerCounts;
use super::error::{ExecuteError, ProgressRefused, ReserveError};
use super::execution::Execution;
use super::expiry_timer::expire_forever;
use super::runner::Runner;
use super::running_slot::RunningSlot;
use super::state::ExecutorState;
use crate::tasks::execution::{
    CapacityReport, DeletedExecution, ExecuteBody, ExecutionQuery, ExecutionView, ProgressAccepted,
    ProgressSink, ReserveBody, Reserved, Started, StopReason, StopSignal,
};
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::{Cancelled, ExecuteRefused, ReserveRefused};
use tidegate::progress::Progress;
use tidegate::task::ExecutionKey;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Longest delay of one response about an execution.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A fixed number of slots and the executions in them. Cheap to clone; usable from any thread.
///
/// Each acceptance is decided in one step before the first await: no race admits one more than the slots.
#[derive(Clone)]
pub struct Executor {
    state: Arc<ExecutorState>,
}

// === impl Executor ===

impl Executor {
    /// Starts an executor whose executions run on `runtime`, for as long as that runs.
    #[must_use]
    pub fn start(config: ExecutorConfig, runner: Runner, runtime: Handle) -> Self {
        let state = Arc::new(ExecutorState::new(config, runner, runtime));
        state.runtime.spawn(expire_forever(Arc::downgrade(&state)));
        Self { state }
    }

    /// Name of the executor.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.state.config.id
    }

    /// Slots in use, slots in all, and the executor's abilities.
    #[must_use]
    pub fn capacity(&self) -> CapacityReport {
        let ExecutorState { config, runner, .. } = &*self.state;
        let table = self.state.lock();
        let occupancy = table.slots.occupancy(self.state.now());
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

    /// Starts an execution in a free slot, or in the slot reserved for it. A repeated request gets the first
    /// response and starts nothing.
    ///
    /// # Errors
    ///
    /// When the request is invalid, no slot is free, or the executor shuts down.
    pub fn execute(&self, body: ExecuteBody) -> Result<Started, ExecuteError> {
        let result = self.try_execute(body);
        if let Err(error) = &result {
            self.state.lock().counts.refuse(error.reason());
        }
        result
    }

    fn try_execute(&self, body: ExecuteBody) -> Result<Started, ExecuteError> {
        let state = &self.state;
        let checked = CheckedExecute::new(body, &state.config, &state.runner)?;
        let CheckedExecute { work, fingerprint, reservation, lease } = checked;
        let key = &work.key;
        let mut table = state.lock();
        let now = state.now();
        table.expire_reservations(now);
        if let Some(retry_after) = table.ends_in(now).filter(|_| !table.known.contains_key(key)) {
            return Err(ExecuteError::Draining { retry_after });
        }
        let granted = match table.slots.execute(key, fingerprint, reservation, lease, now) {
            Ok(granted) => granted,
            Err(ExecuteRefused::Full) => {
                return Err(ExecuteError::Full { retry_after: table.retry_after(now) });
            }
            Err(refused) => return Err(ExecuteError::Refused(refused)),
        };
        let fence = granted.fence;
        let container_id = key.to_string();
        if granted.first {
            let (switch, stop) = StopSignal::new();
            let output_max = state.config.output_bytes_max;
            let execution = Execution::new(key.clone(), fence, lease, output_max, switch);
            let execution = Arc::new(execution);
            table.known.insert(key.clone(), Arc::clone(&execution));
            table.begin(now);
            let earlier = lease.is_some_and(|lease| table.is_earlier(now + lease));
            drop(table);
            if earlier {
                state.expiry_moved.notify_one();
            }
            let slot = RunningSlot::new(Arc::clone(state), execution);
            state.runtime.spawn(slot.run(work, stop));
        } else {
            table.counts.repeated += 1;
        }
        Ok(Started { status: "started".to_owned(), container_id, fence })
    }

    /// Reserves a slot for an execution. A repeated request gets the same slot.
    ///
    /// # Errors
    ///
    /// When no slot is free, the execution has started already, or the executor shuts down.
    pub fn reserve(&self, body: &ReserveBody) -> Result<Reserved, ReserveError> {
        let result = self.try_reserve(body);
        if let Err(error) = &result {
            self.state.lock().counts.refuse(error.reason());
        }
        result
    }

    fn try_reserve(&self, body: &ReserveBody) -> Result<Reserved, ReserveError> {
        let (key, ttl) = check_reserve(body)?;
        let state = &self.state;
        let mut table = state.lock();
        let now = state.now();
        table.expire_reservations(now);
        if let Some(retry_after) = table.ends_in(now) {
            return Err(ReserveError::Draining { retry_after });
        }
        let before = table.slots.occupancy(now).reserved;
        let reservation = match table.slots.reserve(&key, ttl, now) {
            Ok(reservation) => reservation,
            Err(ReserveRefused::Full) => {
                return Err(ReserveError::Full { retry_after: table.retry_after(now) });
            }
            Err(refused) => return Err(ReserveError::Refused(refused)),
        };
        let added = table.slots.occupancy(now).reserved - before;
        table.counts.reserved += u64::from(added);
        if table.is_earlier(reservation.expires_at) {
            state.expiry_moved.notify_one();
        }
        let left = reservation.expires_at.saturating_sub(now);
        let expires_in_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        let (reservation_id, fence) = (reservation_id(reservation.fence), reservation.fence);
        Ok(Reserved { reservation_id, fence, expires_in_ms })
    }

    /// State and output of an execution; `None` when it is unknown or forgotten.
    ///
    /// With a wait the call returns when the state changes or there is output after `after`, but early enough to
    /// renew the lease. The call renews the lease, unless `fence` is another's.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: call again with the same `after`.
    pub async fn execution(
        &self,
        key: &ExecutionKey,
        fence: Option<u64>,
        wait: Duration,
        after: u64,
    ) -> Option<ExecutionView> {
        self.follow(key, &ExecutionQuery { wait, after, fence, progress: None }).await
    }

    /// State, output and progress of an execution, as [`execution`](Self::execution); a change of the progress can
    /// end the wait too.
    pub async fn follow(
        &self,
        key: &ExecutionKey,
        query: &ExecutionQuery,
    ) -> Option<ExecutionView> {
        let execution = self.state.renew(key, query.fence)?;
        let half_lease = execution.lease.map_or(WAIT_MAX, |lease| lease / 2);
        let wait = query.wait.min(WAIT_MAX).min(half_lease);
        if !wait.is_zero() {
            let _ = timeout(wait, execution.changed(query)).await;
            self.state.renew(key, query.fence);
        }
        Some(execution.view(query.after))
    }

    /// Progress of an execution, to read and to await; `None` when it is unknown or forgotten. Renews no lease.
    #[must_use]
    pub fn progress(&self, key: &ExecutionKey) -> Option<ProgressSink> {
        self.state.lock().known.get(key).map(|execution| execution.progress.clone())
    }

    /// Adds a report of progress that arrived over the executor's port.
    ///
    /// # Errors
    ///
    /// When the execution is unknown or has ended.
    pub fn report_progress(
        &self,
        key: &ExecutionKey,
        report: &Progress,
    ) -> Result<ProgressAccepted, ProgressRefused> {
        let progress = self.progress(key).ok_or(ProgressRefused::Unknown)?;
        let refused_names = progress.merge(report).map_err(|_closed| ProgressRefused::Ended)?;
        let progress_version = progress.version();
        Ok(ProgressAccepted { id: key.to_string(), progress_version, refused_names })
    }

    /// Stops an execution; an unknown one is refused when it is requested later.
    pub fn cancel(&self, key: &ExecutionKey) -> DeletedExecution {
        let mut table = self.state.lock();
        table.expire_reservations(self.state.now());
        let cancelled = table.slots.cancel(key);
        let execution = table.known.get(key).cloned();
        drop(table);
        let was = match cancelled {
            Cancelled::Running { .. } => "stopping",
            Cancelled::Reserved => "reserved",
            Cancelled::Ended => "ended",
            Cancelled::BeforeArrival => "unknown",
        };
        if let Some(execution) = execution.filter(|execution| !execution.has_ended()) {
            execution.stop(StopReason::Cancelled);
        }
        DeletedExecution { id: key.to_string(), was: was.to_owned() }
    }

    /// Totals since the start.
    #[must_use]
    pub fn counts(&self) -> WorkerCounts {
        let mut table = self.state.lock();
        table.expire_reservations(self.state.now());
        table.counts.clone()
    }

    pub(super) fn state(&self) -> &ExecutorState {
        &self.state
    }
}
