use super::config::MockConfig;
use super::engine::{Accepted, Ask, Engine, Progress, RankLoad, Refused, SequenceId};
use super::fault_plan::FaultPlan;
use super::faults::{FaultChange, Faults, Reports};
use super::line::Outage;
use super::work::{Bench, WorkLoad, WorkSettings};
use crate::chance::Chance;
use http::HeaderValue;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// What turns the engine's decisions into time that passes and requests that go on.
#[derive(Debug)]
pub(super) struct Shell {
    pub(super) config: MockConfig,
    /// Its name, as answers carry it.
    pub(super) name: Option<HeaderValue>,
    /// What is plain work, and not the engine's.
    pub(super) bench: Bench,
    started: Instant,
    inner: Mutex<Inner>,
    /// Something changed: the driver looks again when the next step ends.
    changed: Notify,
    /// The faults changed: what waits for the next of them to end looks again.
    faults_changed: Notify,
    outage: watch::Sender<Outage>,
    listening: watch::Sender<bool>,
    chance: Chance,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    watchers: HashMap<SequenceId, Watcher>,
    plan: FaultPlan,
    /// What stands by the plan.
    faults: Faults,
    /// What is reported in place of what is true.
    frozen_loads: Option<Vec<RankLoad>>,
}

/// The engine's end of a [`Ticket`].
#[derive(Debug)]
struct Watcher {
    decoded_tokens: Arc<AtomicU64>,
    /// Holds one: whoever is told twice before it looks has missed nothing.
    tick: mpsc::Sender<()>,
}

/// A sequence of the engine, held by the request that it is for. Dropped before its end, it is cancelled.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) accepted: Accepted,
    decoded_tokens: Arc<AtomicU64>,
    tick: mpsc::Receiver<()>,
    shell: Arc<Shell>,
}

// === impl Shell ===

impl Shell {
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
            places: config.engine.max_running,
            blocks: config.engine.kv_blocks,
            max_waiting: config.engine.max_waiting,
        };
        Self {
            // It was checked at the start.
            name: HeaderValue::from_str(&config.name).ok(),
            bench: Bench::new(work, started),
            // A stream apart from the engine's: what faults draw does not change what is said.
            chance: Chance::from_seed(!config.engine.seed),
            config,
            started,
            inner: Mutex::new(inner),
            changed: Notify::new(),
            faults_changed: Notify::new(),
            outage: watch::Sender::default(),
            listening: watch::Sender::new(true),
        }
    }

    /// Advances the engine as time passes, for as long as it is polled.
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
            // Brings the engine up to the present.
            drop(self.present());
            tokio::task::yield_now().await;
        }
    }

    /// Hands a request to the engine.
    pub(super) fn submit(self: &Arc<Self>, ask: Ask) -> Result<Ticket, Refused> {
        let (tick, ticks) = mpsc::channel(1);
        let decoded_tokens = Arc::new(AtomicU64::new(0));
        let (mut inner, now) = self.present();
        let accepted = inner.engine.submit(now, ask)?;
        let watcher = Watcher { decoded_tokens: Arc::clone(&decoded_tokens), tick };
        inner.watchers.insert(accepted.id, watcher);
        drop(inner);
        self.changed.notify_one();
        Ok(Ticket { accepted, decoded_tokens, tick: ticks, shell: Arc::clone(self) })
    }

    /// What the mock says of its load, true or not.
    pub(super) fn reported_loads(&self) -> Vec<RankLoad> {
        let (inner, _) = self.present();
        match inner.faults.reports {
            Reports::Live => self.true_loads(&inner),
            Reports::Stale => inner.frozen_loads.clone().unwrap_or_default(),
            Reports::NotReady => {
                let block_size = self.config.engine.block_size;
                vec![RankLoad { block_size, ..RankLoad::default() }; self.config.engine.ranks]
            }
        }
    }

    pub(super) fn faults(&self) -> Faults {
        self.present().0.faults
    }

    /// Makes things go wrong, or right again; `None` ends all faults.
    ///
    /// # Errors
    ///
    /// What is wrong with the change.
    pub(super) fn change_faults(&self, change: Option<FaultChange>) -> Result<Faults, String> {
        let (mut inner, now) = self.present();
        match change {
            Some(change) => inner.plan.change(now, change)?,
            None => inner.plan = FaultPlan::default(),
        }
        self.suffer(&mut inner, now);
        self.faults_changed.notify_one();
        Ok(inner.faults)
    }

    /// Ends faults when their time is over, for as long as it is polled.
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
            // Ends them.
            drop(self.present());
        }
    }

    /// How it can't be reached, now and later.
    pub(super) fn outage(&self) -> watch::Receiver<Outage> {
        self.outage.subscribe()
    }

    /// Notes whether anybody listens.
    pub(super) fn listens(&self, listening: bool) {
        self.listening.send_replace(listening);
    }

    /// Waits until nobody listens, if the faults say that it is dead.
    pub(super) async fn until_dead(&self) {
        let (mut listening, mut outage) = (self.listening.subscribe(), self.outage());
        tokio::select! {
            _ = listening.wait_for(|listening| !listening) => {}
            // It was so short that nobody noticed, or is none.
            _ = outage.wait_for(|outage| !outage.dead) => {}
        }
    }

    /// Makes everything go as wrong as the plan says.
    fn suffer(&self, inner: &mut Inner, now: Duration) {
        let (old, new) = (inner.faults, inner.plan.standing());
        if new == old {
            return;
        }
        if new.reports != Reports::Stale {
            inner.frozen_loads = None;
        } else if old.reports != Reports::Stale {
            inner.frozen_loads = Some(self.true_loads(inner));
        }
        inner.engine.set_slow_factor(new.slow_factor);
        inner.engine.set_frozen(now, new.frozen);
        self.bench.suffer(&new);
        inner.faults = new;
        self.changed.notify_one();
        let outage = Outage { dead: new.dead, cut: new.cut };
        self.outage.send_if_modified(|old| std::mem::replace(old, outage) != outage);
    }

    /// What the ranks do, and with the first of them what is plain work.
    fn true_loads(&self, inner: &Inner) -> Vec<RankLoad> {
        let mut loads = inner.engine.loads();
        if let Some(first) = loads.first_mut() {
            let WorkLoad { running, waiting, blocks } = self.bench.load();
            first.running += running;
            first.waiting += waiting;
            // The two have a cache each and one is told of, which can't be more than full.
            first.active_blocks = (first.active_blocks + blocks).min(first.total_blocks);
            first.cached_tokens += blocks * first.block_size;
        }
        loads
    }

    /// Whether this request is one of those that fail.
    pub(super) fn fails_now(&self) -> bool {
        let rate = self.faults().failure_rate;
        // 53 bits, the precision of the type: uniform in 0 … 1 without 1.
        rate > 0.0 && ((self.chance.next() >> 11) as f64 / (1_u64 << 53) as f64) < rate
    }

    fn cancel(&self, id: SequenceId) {
        let (mut inner, now) = self.present();
        if inner.watchers.remove(&id).is_some() {
            inner.engine.cancel(now, id);
            self.changed.notify_one();
        }
    }

    /// The engine and the faults as they are now, and when that is. Nobody sees a fault whose time is over,
    /// however late whatever ends faults is.
    fn present(&self) -> (MutexGuard<'_, Inner>, Duration) {
        let mut inner = self.lock();
        let now = self.started.elapsed();
        let Inner { engine, watchers, .. } = &mut *inner;
        engine.advance(now, |progress| {
            if let Some(watcher) = watchers.get(&progress.id) {
                watcher.tell(progress);
            }
        });
        inner.plan.advance(now);
        self.suffer(&mut inner, now);
        (inner, now)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing that holds it panics; if it did, the numbers would still be numbers.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Watcher ===

impl Watcher {
    fn tell(&self, progress: Progress) {
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

    /// Waits until there are more tokens than `seen`, or all, and answers how many. It may wake up for nothing
    /// in between, which is not seen from outside.
    pub(super) fn poll_decoded(&mut self, seen: u64, cx: &mut Context<'_>) -> Poll<u64> {
        loop {
            let decoded = self.decoded_tokens();
            if decoded > seen || self.is_finished() {
                return Poll::Ready(decoded);
            }
            // The sender lives in the shell, which this holds: it can't be closed.
            if self.tick.poll_recv(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Waits for the end. Cancel safe: what is dropped is cancelled.
    pub(super) async fn finished(&mut self) {
        let end = self.accepted.output_tokens - 1;
        std::future::poll_fn(|cx| self.poll_decoded(end, cx)).await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.shell.cancel(self.accepted.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing here drives the shell: what is over is over by the clock alone.
    #[tokio::test(start_paused = true)]
    async fn a_fault_is_over_when_its_time_is_whoever_asks_first() {
        let shell = Shell::new(MockConfig::default());
        let change =
            FaultChange::parse(br#"{"failure_rate": 1, "reports": "not_ready", "for_ms": 100}"#);
        shell.change_faults(Some(change.unwrap())).unwrap();
        let live = RankLoad { block_size: shell.config.engine.block_size, ..RankLoad::default() };
        tokio::time::advance(Duration::from_millis(99)).await;
        assert!(shell.fails_now());
        assert_eq!(shell.reported_loads()[0], live);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_ne!(shell.reported_loads()[0], live, "the load is told first");
        assert!(!shell.fails_now());
        assert_eq!(shell.faults(), Faults::default());
    }
}
