use super::model::Model;
use super::own_delay::OwnDelay;
use super::sync::{self, ArcSwap, AtomicU64, Mutex, MutexGuard, Ordering, fence};
use super::upstream_id::UpstreamId;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_core::limit::UpstreamOutcome;
use tidegate_core::routing::{
    Answer, Availability, AvailabilityEntry, Charge, ExpectedWait, Latency, LoadReport, OnSilence,
    Standing, UpstreamAccount, UpstreamLimit, UpstreamTicket,
};

/// An upstream that threads share. Routing chooses by atomics; a request is charged under the upstream's own lock,
/// which no request to another upstream waits for.
#[derive(Debug)]
pub struct Upstream {
    id: UpstreamId,
    name: Arc<str>,
    /// The moment from which its monitor counts the time.
    started: Instant,
    own_delay: Arc<OwnDelay>,
    state: Mutex<State>,
    /// The models of the pools that it belongs to, which may have requests that wait for it.
    pools: ArcSwap<Vec<Arc<Model>>>,
    in_flight: AtomicU64,
    requests: AtomicU64,
    occupancy: AtomicU64,
    /// The capacity, 0 for unknown, and in the highest bit whether it reports a queue.
    capacity: AtomicU64,
    latency: [AtomicU64; 2],
}

/// The reason that an upstream does not take a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChargeError {
    /// No room for any request.
    Full,
    /// Room for smaller requests only.
    TooSmall,
}

/// Bit of an upstream that reports a queue.
const QUEUE: u64 = 1 << 63;

#[derive(Debug)]
struct State {
    account: UpstreamAccount,
    up: bool,
    /// The models that it serves; `None` for any.
    models: Option<Vec<Arc<str>>>,
    memberships: Vec<Membership>,
}

/// An upstream's part in the pool of a model.
#[derive(Debug)]
pub(super) struct Membership {
    availability: Arc<Availability>,
    model: Arc<Model>,
    entry: AvailabilityEntry,
}

// === impl Upstream ===

impl Upstream {
    pub(super) fn new(
        id: UpstreamId,
        name: &str,
        on_silence: OnSilence,
        limit: UpstreamLimit,
        started: Instant,
        own_delay: &Arc<OwnDelay>,
    ) -> Self {
        let account = UpstreamAccount::new(on_silence, limit);
        let memberships = Vec::new();
        Self {
            id,
            name: name.into(),
            started,
            own_delay: Arc::clone(own_delay),
            pools: ArcSwap::default(),
            state: Mutex::new(State { account, up: true, models: None, memberships }),
            in_flight: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            occupancy: AtomicU64::new(0),
            capacity: AtomicU64::new(0),
            latency: Latency::default().into_words().map(AtomicU64::new),
        }
    }

    /// Returns the identity.
    #[must_use]
    pub fn id(&self) -> UpstreamId {
        self.id
    }

    /// Returns the name in labels, logs and responses.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of requests sent that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Returns the number of requests at the upstream as far as is known, also those of other senders.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Returns the estimated time to the first byte at `now`, in microseconds.
    #[must_use]
    pub fn latency_us(&self, now: Duration) -> u64 {
        self.latency().estimate_at(now)
    }

    /// Returns what is known of the wait of another request.
    pub(super) fn expected_wait(&self, now: Duration) -> ExpectedWait {
        let capacity = self.capacity.load(Ordering::Relaxed);
        ExpectedWait {
            requests: self.occupancy.load(Ordering::Relaxed),
            capacity: u32::try_from(capacity & !QUEUE).ok().filter(|capacity| *capacity > 0),
            latency_us: self.latency().known_at(now),
            has_queue: capacity & QUEUE != 0,
        }
    }

    /// Returns `true` if it counts as reachable.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.lock().up
    }

    pub(super) fn try_charge(
        &self,
        charge: Charge,
        model: &Model,
        now: Duration,
    ) -> Result<UpstreamTicket, ChargeError> {
        let thresholds = model.thresholds();
        self.change(|state| {
            let charged = state.account.try_charge(charge, &thresholds, now);
            charged.map_err(|_| {
                // Under the same lock: a slot that is freed a moment later was not too small.
                match state.account.load().standing(Charge::LEAST, &thresholds) {
                    Standing::Free => ChargeError::TooSmall,
                    _ => ChargeError::Full,
                }
            })
        })
    }

    pub(super) fn charge_anyway(&self, charge: Charge, now: Duration) -> UpstreamTicket {
        self.change(|state| state.account.charge_anyway(charge, now))
    }

    pub(super) fn sent(&self, ticket: &mut UpstreamTicket, now: Duration) {
        // The load is the same before and after: nothing to publish.
        self.lock().account.sent(ticket, now);
    }

    pub(super) fn prefilled(&self, ticket: &mut UpstreamTicket) {
        self.change(|state| state.account.prefilled(ticket));
    }

    pub(super) fn release(&self, ticket: UpstreamTicket, outcome: UpstreamOutcome, now: Duration) {
        let is_awaited = self.is_awaited();
        self.change(|state| {
            state.account.set_own_delay(self.own_delay.mean());
            state.account.release(ticket, outcome, is_awaited, now);
        });
        self.serve_waiting(now);
    }

    /// Lets time pass: expires reports made before this, and ends the rounds of the limit. Returns `true` if any
    /// report was valid until now.
    pub(super) fn tick(&self, now: Duration, expire_before: Duration) -> bool {
        let is_awaited = self.is_awaited();
        let expired = self.change(|state| state.account.tick(now, expire_before, is_awaited));
        self.serve_waiting(now);
        expired
    }

    fn is_awaited(&self) -> bool {
        let is_awaited =
            |model: &Model| model.queue.most_urgent().is_some() || model.demand.is_awaited();
        self.pools.load().iter().any(|model| is_awaited(model))
    }

    pub(super) fn record_report(&self, rank: usize, report: LoadReport, at: Duration) {
        let now = self.now();
        self.change(|state| state.account.record_report(rank, report, at, now));
        self.serve_waiting(now);
    }

    pub(super) fn keep_ranks(&self, ranks: &[usize]) {
        self.change(|state| state.account.keep_ranks(ranks));
        self.serve_waiting(self.now());
    }

    /// Returns `true` if the state changed.
    pub(super) fn set_up(&self, up: bool) -> bool {
        let now = self.now();
        let changed = self.change(|state| {
            let changed = std::mem::replace(&mut state.up, up) != up;
            if changed && up {
                // One that comes back is used at once: how it failed says nothing about it now.
                state.account.recover(now);
                self.store_latency(Latency::default());
            }
            changed
        });
        self.serve_waiting(now);
        changed
    }

    /// Returns the time as its monitor counts it.
    pub(super) fn now(&self) -> Duration {
        sync::now().saturating_duration_since(self.started)
    }

    /// Serves the requests that wait for one of its pools, the most urgent pool first. Call it after a slot may
    /// have become free, without the lock.
    fn serve_waiting(&self, now: Duration) {
        // Before the bands are read: see the queue.
        fence(Ordering::SeqCst);
        let pools = self.pools.load();
        let mut waiting = pools.iter().filter(|model| model.queue.most_urgent().is_some());
        let Some(first) = waiting.next() else { return };
        let mut all: Vec<_> = waiting.collect();
        if all.is_empty() {
            return first.queue.serve(now);
        }
        all.insert(0, first);
        all.sort_by_key(|model| model.queue.most_urgent().unwrap_or(u32::MAX));
        all.iter().for_each(|model| model.queue.serve(now));
    }

    /// Returns `true` if the models changed.
    pub(super) fn set_models(&self, models: Option<Vec<Arc<str>>>) -> bool {
        let mut state = self.lock();
        let changed = state.models != models;
        state.models = models;
        changed
    }

    pub(super) fn models(&self) -> Option<Vec<Arc<str>>> {
        self.lock().models.clone()
    }

    /// Joins these pools, and leaves all others.
    pub(super) fn join(&self, memberships: Vec<Membership>) {
        let mut models: Vec<Arc<Model>> = Vec::new();
        for Membership { model, .. } in &memberships {
            if !models.iter().any(|known| Arc::ptr_eq(known, model)) {
                models.push(Arc::clone(model));
            }
        }
        self.pools.store(Arc::new(models));
        self.change(|state| state.memberships = memberships);
    }

    /// Publishes again after a change of thresholds.
    pub(super) fn refresh(&self) {
        self.change(|state| {
            for membership in &mut state.memberships {
                membership.entry.set_thresholds(membership.model.thresholds());
            }
        });
        self.serve_waiting(self.now());
    }

    pub(super) fn observe(&self, answer: Answer, now: Duration) {
        let is_only_probed = {
            let state = self.lock();
            let mut latency = self.latency();
            latency.observe(answer, now);
            self.store_latency(latency);
            state.account.is_only_probed()
        };
        // A stream may go on for long: its beginning shows that the upstream is back.
        if is_only_probed && matches!(answer, Answer::Began(_)) {
            self.change(|state| state.account.recover(now));
            self.serve_waiting(now);
        }
    }

    fn store_latency(&self, latency: Latency) {
        for (cell, word) in self.latency.iter().zip(latency.into_words()) {
            cell.store(word, Ordering::Relaxed);
        }
    }

    pub(super) fn with_account<R>(&self, read: impl FnOnce(&UpstreamAccount) -> R) -> R {
        read(&self.lock().account)
    }

    /// Reads the two words apart: a reader between two estimates may see half of each, which is an estimate too.
    fn latency(&self) -> Latency {
        Latency::from_words([0, 1].map(|index: usize| self.latency[index].load(Ordering::Relaxed)))
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        self.in_flight.store(state.account.load().outstanding(), Ordering::Relaxed);
        let requests = state.account.load().requests();
        self.requests.store(requests, Ordering::Relaxed);
        let wait = state.account.expected_wait(None);
        self.occupancy.store(wait.requests, Ordering::Relaxed);
        let queue = if wait.has_queue { QUEUE } else { 0 };
        self.capacity.store(u64::from(wait.capacity.unwrap_or(0)) | queue, Ordering::Relaxed);
        state.publish(requests);
        result
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        sync::lock(&self.state)
    }
}

// === impl Membership ===

impl Membership {
    pub fn new(availability: &Arc<Availability>, model: &Arc<Model>, index: usize) -> Self {
        let entry = AvailabilityEntry::new(index, model.thresholds());
        Self { availability: Arc::clone(availability), model: Arc::clone(model), entry }
    }
}

// === impl State ===

impl State {
    fn publish(&mut self, requests: u64) {
        for Membership { availability, entry, .. } in &mut self.memberships {
            let shown = entry.judge(self.account.load(), self.up);
            entry.publish(availability, shown, requests);
        }
    }
}
