use super::model::Model;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::routing::{
    Answer, Availability, AvailabilityEntry, Charge, ChargeTicket, Latency, LoadAccount,
    LoadReport, OnSilence, Standing,
};

/// The identity of an upstream within its monitor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UpstreamId(pub usize);

/// An upstream that threads share. Routing chooses by atomics; a request is charged under the upstream's own lock,
/// which no request to another upstream waits for.
#[derive(Debug)]
pub struct Upstream {
    id: UpstreamId,
    name: Arc<str>,
    state: Mutex<State>,
    in_flight: AtomicU64,
    requests: AtomicU64,
    latency: [AtomicU64; 2],
}

#[derive(Debug)]
struct State {
    account: LoadAccount,
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
    pub(super) fn new(id: UpstreamId, name: &str, on_silence: OnSilence) -> Self {
        Self {
            id,
            name: name.into(),
            state: Mutex::new(State {
                account: LoadAccount::new(on_silence),
                up: true,
                models: None,
                memberships: Vec::new(),
            }),
            in_flight: AtomicU64::new(0),
            requests: AtomicU64::new(0),
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

    /// Returns the expected wait of another request: in flight times latency.
    pub(super) fn cost(&self, now: Duration) -> u64 {
        (self.in_flight() + 1).saturating_mul(self.latency_us(now))
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
        priority: MessagePriority,
    ) -> Result<ChargeTicket, Standing> {
        let thresholds = model.thresholds();
        self.change(|state| state.account.try_charge(charge, thresholds.of(priority)))
    }

    pub(super) fn charge_anyway(&self, charge: Charge) -> ChargeTicket {
        self.change(|state| state.account.charge_anyway(charge))
    }

    pub(super) fn sent(&self, ticket: &mut ChargeTicket, now: Duration) {
        // The load is the same before and after: nothing to publish.
        self.lock().account.sent(ticket, now);
    }

    pub(super) fn prefilled(&self, ticket: &mut ChargeTicket) {
        self.change(|state| state.account.prefilled(ticket));
    }

    pub(super) fn release(&self, ticket: ChargeTicket) {
        self.change(|state| state.account.release(ticket));
    }

    pub(super) fn record_report(&self, rank: usize, report: LoadReport, at: Duration) {
        self.change(|state| state.account.record_report(rank, report, at));
    }

    pub(super) fn keep_ranks(&self, ranks: &[usize]) {
        self.change(|state| state.account.keep_ranks(ranks));
    }

    /// Expires reports made before this. Returns `true` if any was valid until now.
    pub(super) fn expire(&self, before: Duration) -> bool {
        self.change(|state| state.account.expire(before))
    }

    /// Returns `true` if the state changed.
    pub(super) fn set_up(&self, up: bool) -> bool {
        self.change(|state| std::mem::replace(&mut state.up, up) != up)
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
        self.change(|state| state.memberships = memberships);
    }

    /// Publishes again after a change of thresholds.
    pub(super) fn refresh(&self) {
        self.change(|state| {
            for membership in &mut state.memberships {
                membership.entry.set_thresholds(membership.model.thresholds());
            }
        });
    }

    pub(super) fn observe(&self, answer: Answer, now: Duration) {
        let _state = self.lock();
        let mut latency = self.latency();
        latency.observe(answer, now);
        for (cell, word) in self.latency.iter().zip(latency.into_words()) {
            cell.store(word, Ordering::Relaxed);
        }
    }

    pub(super) fn with_account<R>(&self, read: impl FnOnce(&LoadAccount) -> R) -> R {
        read(&self.lock().account)
    }

    /// Reads the two words apart: a reader between two estimates may see half of each, which is an estimate too.
    fn latency(&self) -> Latency {
        Latency::from_words([0, 1].map(|index: usize| self.latency[index].load(Ordering::Relaxed)))
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        self.in_flight.store(state.account.outstanding(), Ordering::Relaxed);
        let requests = state.account.requests();
        self.requests.store(requests, Ordering::Relaxed);
        state.publish(requests);
        result
    }

    /// Locks the state. A panic while the lock is held leaves correct sums: every change to them is atomic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            let shown = entry.judge(&self.account, self.up);
            entry.publish(availability, shown, requests);
        }
    }
}
