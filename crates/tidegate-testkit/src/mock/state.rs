use super::config::MockConfig;
use super::engine::{Accepted, Engine, Progress, RankLoad, Refused, SequenceId, SequenceRequest};
use super::faults::{FaultChange, FaultPlan, Faults, Outage, Reports};
use super::work::{WorkLoad, WorkRunner, WorkSettings};
use http::HeaderValue;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tidegate::rng::Rng;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// State of a running mock: engine, work and faults, driven by the clock.
#[derive(Debug)]
pub(super) struct MockState {
    pub(super) config: MockConfig,
    /// Name header of responses.
    pub(super) name: Option<HeaderValue>,
    /// Plain work, apart from the engine.
    pub(super) work: WorkRunner,
    started: Instant,
    inner: Mutex<Inner>,
    /// Wakes the engine's driver.
    changed: Notify,
    /// Wakes the driver of faults.
    faults_changed: Notify,
    outage: watch::Sender<Outage>,
    listening: watch::Sender<bool>,
    rng: Rng,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    watchers: HashMap<SequenceId, Watcher>,
    plan: FaultPlan,
    /// Faults at present, by the plan.
    faults: Faults,
    /// Stale loads that are reported instead of the actual ones.
    frozen_loads: Option<Vec<RankLoad>>,
}

/// Sending half of a [`Ticket`].
#[derive(Debug)]
struct Watcher {
    decoded_tokens: Arc<AtomicU64>,
    /// Capacity 1: two notifications before a poll are one.
    tick: mpsc::Sender<()>,
}

/// Handle to a sequence of the engine; a drop cancels it.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) accepted: Accepted,
    decoded_tokens: Arc<AtomicU64>,
    tick: mpsc::Receiver<()>,
    state: Arc<MockState>,
}

// === impl MockState ===

impl MockState {
    pub(super) fn new(config: MockConfig) -> Self {
        let inner = Inner {
            engine: Engine::new(config.engine),
            watchers: HashMap::new(),
            plan: FaultPlan::default(),
            faults: Faults::default(),
            frozen_loads: None,
        };
        let started = Instant::now();
        let work = WorkSettings {
            slots: config.engine.max_running,
            blocks: config.engine.kv_blocks,
            max_waiting: config.engine.max_waiting,
            thrash_above: config.thrash_above,
        };
        Self {
            // The name is validated at the start.
            name: HeaderValue::from_str(&config.name).ok(),
            work: WorkRunner::new(work, started),
            // Another sequence than the engine's: faults do not change generated text.
            rng: Rng::from_seed(!config.engine.seed),
            config,
            started,
            inner: Mutex::new(inner),
            changed: Notify::new(),
            faults_changed: Notify::new(),
            outage: watch::Sender::default(),
            listening: watch::Sender::new(true),
        }
    }

    /// Advances the engine with time, while it is polled.
    pub(super) async fn drive(&self) {
        loop {
            let next = self.lock().engine.next_event();
            match next {
                Some(at) => tokio::select! {
                    () = sleep_until(self.started + at) => {}
                    () = self.changed.notified() => {}
                },
                None => self.changed.notified().await,
            }
            // Advances the engine.
            drop(self.at_present());
            tokio::task::yield_now().await;
        }
    }

    /// Submits a sequence to the engine.
    pub(super) fn submit(self: &Arc<Self>, request: SequenceRequest) -> Result<Ticket, Refused> {
        let (tick, ticks) = mpsc::channel(1);
        let decoded_tokens = Arc::new(AtomicU64::new(0));
        let (mut inner, now) = self.at_present();
        let accepted = inner.engine.submit(now, request)?;
        let watcher = Watcher { decoded_tokens: Arc::clone(&decoded_tokens), tick };
        inner.watchers.insert(accepted.id, watcher);
        drop(inner);
        self.changed.notify_one();
        Ok(Ticket { accepted, decoded_tokens, tick: ticks, state: Arc::clone(self) })
    }

    /// Loads that the mock reports, which faults may falsify.
    pub(super) fn reported_loads(&self) -> Vec<RankLoad> {
        let (inner, _) = self.at_present();
        match inner.faults.reports {
            Reports::Live => self.actual_loads(&inner),
            Reports::Stale => inner.frozen_loads.clone().unwrap_or_default(),
            Reports::NotReady => {
                let block_size = self.config.engine.block_size;
                vec![RankLoad { block_size, ..RankLoad::default() }; self.config.engine.ranks]
            }
        }
    }

    pub(super) fn faults(&self) -> Faults {
        self.at_present().0.faults
    }

    /// Changes faults; `None` ends all.
    ///
    /// # Errors
    ///
    /// Message about an invalid change.
    pub(super) fn change_faults(&self, change: Option<FaultChange>) -> Result<Faults, String> {
        let (mut inner, now) = self.at_present();
        match change {
            Some(change) => inner.plan.change(now, change)?,
            None => inner.plan = FaultPlan::default(),
        }
        self.apply_faults(&mut inner, now);
        self.faults_changed.notify_one();
        Ok(inner.faults)
    }

    /// Ends timed faults, while it is polled.
    pub(super) async fn drive_faults(&self) {
        loop {
            let next = self.lock().plan.next_end();
            match next {
                Some(at) => tokio::select! {
                    () = sleep_until(self.started + at) => {}
                    () = self.faults_changed.notified() => {}
                },
                None => self.faults_changed.notified().await,
            }
            // Ends timed faults.
            drop(self.at_present());
        }
    }

    /// Outage, now and later.
    pub(super) fn outage(&self) -> watch::Receiver<Outage> {
        self.outage.subscribe()
    }

    /// Sets whether the mock listens.
    pub(super) fn set_listening(&self, listening: bool) {
        self.listening.send_replace(listening);
    }

    /// Waits until the mock does not listen, if the faults say dead.
    pub(super) async fn until_dead(&self) {
        let (mut listening, mut outage) = (self.listening.subscribe(), self.outage());
        tokio::select! {
            _ = listening.wait_for(|listening| !listening) => {}
            // The outage is over before it began, or there is none.
            _ = outage.wait_for(|outage| !outage.dead) => {}
        }
    }

    /// Applies the faults of the plan.
    fn apply_faults(&self, inner: &mut Inner, now: Duration) {
        let (old, new) = (inner.faults, inner.plan.current());
        if new == old {
            return;
        }
        if new.reports != Reports::Stale {
            inner.frozen_loads = None;
        } else if old.reports != Reports::Stale {
            inner.frozen_loads = Some(self.actual_loads(inner));
        }
        inner.engine.set_slow_factor(new.slow_factor);
        inner.engine.set_frozen(now, new.frozen);
        self.work.apply_faults(&new);
        inner.faults = new;
        self.changed.notify_one();
        let outage = Outage { dead: new.dead, cut: new.cut };
        self.outage.send_if_modified(|old| std::mem::replace(old, outage) != outage);
    }

    /// Actual loads of the ranks; the first includes plain work.
    fn actual_loads(&self, inner: &Inner) -> Vec<RankLoad> {
        let mut loads = inner.engine.loads();
        if let Some(first) = loads.first_mut() {
            let WorkLoad { running, waiting, blocks } = self.work.load();
            first.running += running;
            first.waiting += waiting;
            // Engine and work have separate caches; the report shows one, which is at most full.
            first.active_blocks = (first.active_blocks + blocks).min(first.total_blocks);
            first.cached_tokens += blocks * first.block_size;
        }
        loads
    }

    /// Decides whether this request fails.
    pub(super) fn fails_now(&self) -> bool {
        let rate = self.faults().failure_rate;
        rate > 0.0 && self.rng.fraction() < rate
    }

    fn cancel(&self, id: SequenceId) {
        let (mut inner, now) = self.at_present();
        if inner.watchers.remove(&id).is_some() {
            inner.engine.cancel(now, id);
            self.changed.notify_one();
        }
    }

    /// Advances engine and faults to the present; returns the state and the time. A fault whose time is over is
    /// never seen, even if its timer is late.
    fn at_present(&self) -> (MutexGuard<'_, Inner>, Duration) {
        let mut inner = self.lock();
        let now = self.started.elapsed();
        let Inner { engine, watchers, .. } = &mut *inner;
        engine.advance(now, |progress| {
            if let Some(watcher) = watchers.get(&progress.id) {
                watcher.notify(progress);
            }
        });
        inner.plan.advance(now);
        self.apply_faults(&mut inner, now);
        (inner, now)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No holder of the lock panics; if one did, the counts would still be valid.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Watcher ===

impl Watcher {
    fn notify(&self, progress: Progress) {
        self.decoded_tokens.store(progress.decoded_tokens, Ordering::Release);
        let _ = self.tick.try_send(());
    }
}

// === impl Ticket ===

impl Ticket {
    /// Tokens decoded so far.
    pub(super) fn decoded_tokens(&self) -> u64 {
        self.decoded_tokens.load(Ordering::Acquire)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.decoded_tokens() == self.accepted.output_tokens
    }

    /// Ready with the number of decoded tokens when it exceeds `seen` or all are decoded.
    pub(super) fn poll_decoded(&mut self, seen: u64, cx: &mut Context<'_>) -> Poll<u64> {
        loop {
            let decoded = self.decoded_tokens();
            if decoded > seen || self.is_finished() {
                return Poll::Ready(decoded);
            }
            // The state holds the sender: the channel can't be closed.
            if self.tick.poll_recv(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Waits for the end of the sequence.
    pub(super) async fn finished(&mut self) {
        let end = self.accepted.output_tokens - 1;
        std::future::poll_fn(|cx| self.poll_decoded(end, cx)).await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.state.cancel(self.accepted.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No driver runs: faults end by the clock alone.
    #[tokio::test(start_paused = true)]
    async fn a_timed_fault_ends_without_a_driver() {
        let state = MockState::new(MockConfig::default());
        let change =
            FaultChange::parse(br#"{"failure_rate": 1, "reports": "not_ready", "for_ms": 100}"#);
        state.change_faults(Some(change.unwrap())).unwrap();
        let live = RankLoad { block_size: state.config.engine.block_size, ..RankLoad::default() };
        tokio::time::advance(Duration::from_millis(99)).await;
        assert!(state.fails_now());
        assert_eq!(state.reported_loads()[0], live);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_ne!(state.reported_loads()[0], live, "the load is read first");
        assert!(!state.fails_now());
        assert_eq!(state.faults(), Faults::default());
    }
}
