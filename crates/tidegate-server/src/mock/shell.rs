use super::config::MockConfig;
use super::engine::{Accepted, Ask, Engine, Progress, RankLoad, Refused, SequenceId};
use super::faults::{FaultChange, Faults, Reports};
use crate::chance::Chance;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

/// What turns the engine's decisions into time that passes and requests that go on.
#[derive(Debug)]
pub(super) struct Shell {
    pub(super) config: MockConfig,
    started: Instant,
    inner: Mutex<Inner>,
    /// Something changed: the driver looks again when the next step ends.
    changed: Notify,
    chance: Chance,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    watchers: HashMap<SequenceId, Watcher>,
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
            faults: Faults::default(),
            frozen_loads: None,
        };
        Self {
            // A stream apart from the engine's: what faults draw does not change what is said.
            chance: Chance::from_seed(!config.engine.seed),
            config,
            started: Instant::now(),
            inner: Mutex::new(inner),
            changed: Notify::new(),
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
            Reports::Live => inner.engine.loads(),
            Reports::Stale => inner.frozen_loads.clone().unwrap_or_default(),
            Reports::NotReady => {
                let block_size = self.config.engine.block_size;
                vec![RankLoad { block_size, ..RankLoad::default() }; self.config.engine.ranks]
            }
        }
    }

    pub(super) fn faults(&self) -> Faults {
        self.lock().faults
    }

    /// Makes things go wrong, or right again; `None` ends all faults.
    pub(super) fn change_faults(&self, change: Option<FaultChange>) -> Faults {
        let (mut inner, now) = self.present();
        let old = inner.faults;
        let new = change.map_or(Faults::default(), |change| change.applied_to(old));
        if new.reports != Reports::Stale {
            inner.frozen_loads = None;
        } else if old.reports != Reports::Stale {
            inner.frozen_loads = Some(inner.engine.loads());
        }
        inner.engine.set_frozen(now, new.frozen);
        inner.faults = new;
        drop(inner);
        self.changed.notify_one();
        new
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

    /// The engine as it is now, and when that is.
    fn present(&self) -> (MutexGuard<'_, Inner>, Duration) {
        let mut inner = self.lock();
        let now = self.started.elapsed();
        let Inner { engine, watchers, .. } = &mut *inner;
        engine.advance(now, |progress| {
            if let Some(watcher) = watchers.get(&progress.id) {
                watcher.tell(progress);
            }
        });
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
