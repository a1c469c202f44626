use super::executor_registry::ExecutorRegistry;
use super::lease_book::LeaseBook;
use super::schedule::{Chore, Schedule};
use super::shared_queue::SharedQueue;
use super::task_book::TaskBook;
use super::task_queue::TaskQueue;
use crate::tasks::manager::background::{ExecutorCalls, LedgerCalls, StoreCalls};
use crate::tasks::manager::command::Command;
use crate::tasks::manager::event::Event;
use crate::tasks::manager::link::ExecutorTarget;
use crate::tasks::manager::metrics::{ManagerGauges, ManagerMeters};
use crate::tasks::manager::sessions::{SessionInlet, WorkerHub};
use crate::tasks::manager::settings::ManagerSettings;
use crate::tasks::manager::unix_time::{millis, now_ms};
use std::sync::Arc;
use std::time::Duration;
use tidegate::ledger::Ledger;
use tidegate::rng::Rng;
use tidegate::tasks::TaskStore;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// Longest interval between two checks of what is due.
const TICK: Duration = Duration::from_millis(100);
/// Events or commands taken in before the next dispatch: under load one dispatch serves many.
const BATCH_MAX: usize = 256;

/// The manager's state. Each part owns its fields and changes them by its methods.
pub struct Actor<S, L> {
    pub(super) settings: ManagerSettings,
    pub(super) tasks: TaskBook,
    pub(super) queue: TaskQueue,
    pub(super) executors: ExecutorRegistry,
    pub(super) leases: LeaseBook,
    pub(super) store: StoreCalls<S>,
    pub(super) ledger: LedgerCalls<L>,
    pub(super) calls: ExecutorCalls,
    pub(super) meters: Arc<ManagerMeters>,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) rng: Rng,
    pub(super) draining: bool,
    /// Workers that dial, if the manager has a port for them.
    pub(super) hub: Option<Arc<WorkerHub>>,
    /// With a queue that belongs to nobody: this manager's part in it.
    pub(super) shared: Option<SharedQueue>,
    schedule: Schedule,
}

/// Phase of the manager's shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopPhase {
    /// The manager runs.
    Running,
    /// The manager accepts nothing more, and lets local executions finish.
    Draining,
}

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    /// The state of a manager without tasks.
    pub fn new(
        settings: ManagerSettings,
        targets: &[ExecutorTarget],
        store: Arc<S>,
        ledger: Arc<L>,
        (meters, events, hub): (Arc<ManagerMeters>, mpsc::Sender<Event>, Option<Arc<WorkerHub>>),
    ) -> Self {
        Self {
            tasks: TaskBook::default(),
            queue: TaskQueue::new(settings.placement),
            executors: ExecutorRegistry::new(targets),
            leases: LeaseBook::default(),
            store: StoreCalls::new(store, events.clone(), settings.claims),
            ledger: LedgerCalls::new(ledger, events.clone()),
            calls: ExecutorCalls::new(events.clone()),
            meters,
            events,
            rng: Rng::from_process(),
            draining: false,
            hub,
            shared: settings.claims.then(SharedQueue::default),
            schedule: Schedule::new(&settings, Instant::now()),
            settings,
        }
    }

    /// Runs until a stop, and then until local executions and submissions are done or the grace period is over.
    pub async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut events: mpsc::Receiver<Event>,
        mut sessions: SessionInlet,
        (mut stop, grace): (watch::Receiver<StopPhase>, Duration),
    ) {
        let mut until = None;
        let mut batch = Vec::new();
        self.probe_local();
        self.adopt();
        self.watch_ledger();
        if self.shared.is_some() {
            self.store.watch_hints();
            self.store.read_queue();
        }
        loop {
            let wake = self.next_wake();
            tokio::select! {
                biased;
                count = events.recv_many(&mut batch, BATCH_MAX) => {
                    if count == 0 {
                        return;
                    }
                    for event in batch.drain(..) {
                        self.take_event(event);
                    }
                }
                Some(event) = sessions.events.recv() => self.take_session_event(event),
                Some(command) = commands.recv() => {
                    self.take_command(command);
                    for _ in 1..BATCH_MAX {
                        let Ok(command) = commands.try_recv() else { break };
                        self.take_command(command);
                    }
                }
                changed = stop.changed(), if !self.draining => {
                    let _ = changed;
                    self.draining = true;
                    until = Some(Instant::now() + grace);
                    tracing::info!(tasks = self.tasks.len(), "manager shuts down; its tasks are persisted");
                }
                () = sleep_until(wake) => {}
                // Last: everything else is worth more, and what waits is merged.
                Some(progress) = sessions.progress.recv() => self.take_progress(progress),
            }
            self.do_chores();
            self.dispatch();
            if self.draining {
                self.drain_shared();
                if self.may_end(until) {
                    return;
                }
            }
        }
    }

    fn next_wake(&self) -> Instant {
        let tick = Instant::now() + TICK;
        if self.draining {
            // It dispatches nothing, so that what is due would stay due: the loop would never sleep.
            return tick;
        }
        let claim = self.shared.as_ref().and_then(|shared| self.queue.next_claim(&shared.claims));
        self.queue.next_wake().into_iter().chain(claim).fold(tick, Instant::min)
    }

    /// True when a shutdown need not wait: executions elsewhere go on and are found by the next process or another
    /// manager, local ones end with this one.
    fn may_end(&self, until: Option<Instant>) -> bool {
        let mut running = self.tasks.iter().filter_map(|entry| entry.executor());
        let busy = running.any(|executor| self.executors.is_local(executor));
        let pending = busy || self.tasks.has_submissions() || self.is_handing_over();
        !pending || until.is_some_and(|until| Instant::now() >= until)
    }

    fn do_chores(&mut self) {
        self.queue.push_due(&self.tasks);
        for chore in self.schedule.due(Instant::now()) {
            match chore {
                Chore::Probe => {
                    self.probe();
                    if self.shared.is_some() {
                        self.store.read_queue();
                    }
                    self.set_gauges();
                }
                Chore::RenewLeases => self.renew_leases(),
                Chore::Adopt => self.adopt(),
                Chore::Purge => {
                    let retention_ms = millis(self.settings.retention);
                    self.store.purge(now_ms().saturating_sub(retention_ms));
                }
            }
        }
    }

    /// Adopts tasks of an earlier process of this manager, or of a manager that is gone. While it drains it renews
    /// its heartbeat alone: what it would adopt is what it hands over.
    fn adopt(&self) {
        if self.draining {
            return self.store.beat(self.settings.owner.clone(), self.settings.lease);
        }
        let room = self.settings.tasks_max.saturating_sub(self.tasks.total());
        self.store.adopt(self.settings.owner.clone(), self.settings.lease, room);
        self.take_over();
        if self.settings.shared_store && self.shared.is_none() {
            self.store.adopt_queued(self.settings.owner.clone(), room);
        }
    }

    /// Publishes the gauges.
    pub(super) fn set_gauges(&self) {
        let mut gauges = ManagerGauges {
            bytes: self.tasks.bytes() as u64,
            executors: self.executors.gauges(),
            ..ManagerGauges::default()
        };
        let mut oldest_ms = u64::MAX;
        for record in self.tasks.iter().map(|entry| entry.record()) {
            match record.state.started_ms {
                Some(_) => gauges.running += 1,
                None => {
                    gauges.waiting[record.spec.priority as usize] += 1;
                    oldest_ms = oldest_ms.min(record.state.queued_ms);
                }
            }
        }
        if let Some(shared) = &self.shared {
            for (waiting, more) in gauges.waiting.iter_mut().zip(shared.depth.waiting) {
                *waiting += more;
            }
            oldest_ms = oldest_ms.min(shared.depth.oldest_ms.unwrap_or(u64::MAX));
        }
        if oldest_ms != u64::MAX {
            gauges.oldest_queued = Duration::from_millis(now_ms().saturating_sub(oldest_ms));
        }
        self.meters.set_gauges(gauges);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::execution::CapacityReport;
    use crate::tasks::manager::actor::task_book::tests::record;
    use std::path::{Path, PathBuf};
    use tidegate::capacity::ExecutorId;
    use tidegate::ledger::MemoryLedger;
    use tidegate::tasks::{FjallTaskStore, NewTask, Submission};

    type Parts = (Actor<FjallTaskStore, MemoryLedger>, mpsc::Receiver<Event>);

    /// A folder of this test alone, without anything in it.
    fn empty(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("tidegate-actor-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    async fn actor(folder: &Path, settings: ManagerSettings) -> Parts {
        let store = Arc::new(FjallTaskStore::open(folder).await.unwrap());
        let ledger = Arc::new(MemoryLedger::new());
        let (events, events_in) = mpsc::channel(8);
        let shared = (Arc::default(), events, None);
        (Actor::new(settings, &[], store, ledger, shared), events_in)
    }

    /// Nothing is claimed any more, so that a claim which is due stays due.
    #[tokio::test]
    async fn a_manager_that_drains_sleeps_although_a_claim_is_due() {
        let folder = empty("drains");
        let settings = ManagerSettings { claims: true, ..ManagerSettings::default() };
        let (mut actor, _events) = actor(&folder, settings).await;
        let report = r#"{ "executor_id": "e", "can_accept": true, "running": 0, "max_concurrent": 4,
            "available_slots": 4 }"#;
        let report: CapacityReport = serde_json::from_str(report).unwrap();
        actor.queue.executor_up(ExecutorId(0), &report, 0);
        assert!(actor.next_wake() <= Instant::now(), "a claim is due");
        actor.draining = true;
        assert!(actor.next_wake() > Instant::now() + TICK / 2);
        let _ = std::fs::remove_dir_all(&folder);
    }

    /// Tasks that it has handed over are its own of an earlier life, as far as the store knows.
    #[tokio::test]
    async fn a_manager_that_drains_adopts_nothing() {
        for draining in [false, true] {
            let folder = empty(if draining { "adopts-nothing" } else { "adopts" });
            let before = FjallTaskStore::open(&folder).await.unwrap();
            let new = NewTask { record: record("a"), key: None, fingerprint: [0; 16] };
            assert_eq!(before.submit(new).await.unwrap(), Submission::New);
            before.close().await;
            let (mut actor, mut events) = actor(&folder, ManagerSettings::default()).await;
            actor.draining = draining;
            actor.adopt();
            // The call that it has begun holds the last sender.
            drop(actor);
            let adopted =
                matches!(events.recv().await, Some(Event::Adopted(page)) if page.len() == 1);
            assert_eq!(adopted, !draining);
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}
