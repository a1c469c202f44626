use super::model::{Board, Limits, Model, Shown};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::routing::{
    Answer, Charge, Latency, LoadReport, OnSilence, Standing, Ticket, WorkerLedger,
};

/// Names a worker for as long as its monitor lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub usize);

/// One worker as all threads see it. What routing reads to choose is atomic; what a request takes is charged
/// under the worker's own lock, which nobody else's request waits for.
#[derive(Debug)]
pub struct Worker {
    id: WorkerId,
    name: Arc<str>,
    state: Mutex<State>,
    in_flight: AtomicU64,
    requests: AtomicU64,
    latency: [AtomicU64; 2],
}

#[derive(Debug)]
struct State {
    ledger: WorkerLedger,
    up: bool,
    /// The models it serves; `None` while that is not known, which is all of them.
    models: Option<Vec<Arc<str>>>,
    seats: Vec<Seat>,
}

/// A worker's place on the board of a model.
#[derive(Debug)]
struct Seat {
    board: Arc<Board>,
    place: usize,
    /// The model's, as they were when last told to look.
    limits: Limits,
    shown: Option<Shown>,
}

// === impl Worker ===

impl Worker {
    pub(super) fn new(id: WorkerId, name: &str, on_silence: OnSilence) -> Self {
        Self {
            id,
            name: name.into(),
            state: Mutex::new(State {
                ledger: WorkerLedger::new(on_silence),
                up: true,
                models: None,
                seats: Vec::new(),
            }),
            in_flight: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            latency: Latency::default().into_words().map(AtomicU64::new),
        }
    }

    /// Which worker this is.
    #[must_use]
    pub fn id(&self) -> WorkerId {
        self.id
    }

    /// Its name in labels, logs and answers.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Requests sent to it that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Requests that are there as far as is known, also those that others sent.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How long it takes to begin an answer, in microseconds, as far as is known at `now`.
    #[must_use]
    pub fn latency_us(&self, now: Duration) -> u64 {
        self.latency().estimate_at(now)
    }

    /// What another request to it would cost in waiting: in flight times latency.
    pub(super) fn cost(&self, now: Duration) -> u64 {
        (self.in_flight() + 1).saturating_mul(self.latency_us(now))
    }

    /// Whether it is taken to be there.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.lock().up
    }

    pub(super) fn try_charge(
        &self,
        charge: Charge,
        model: &Model,
        priority: MessagePriority,
    ) -> Result<Ticket, Standing> {
        let limits = model.limits();
        self.change(|state| state.ledger.try_charge(charge, limits.of(priority)))
    }

    pub(super) fn charge_anyway(&self, charge: Charge) -> Ticket {
        self.change(|state| state.ledger.charge_anyway(charge))
    }

    pub(super) fn sent(&self, ticket: &mut Ticket, now: Duration) {
        // It counts the same before and after: nothing to show.
        self.lock().ledger.sent(ticket, now);
    }

    pub(super) fn prefilled(&self, ticket: &mut Ticket) {
        self.change(|state| state.ledger.prefilled(ticket));
    }

    pub(super) fn release(&self, ticket: Ticket) {
        self.change(|state| state.ledger.release(ticket));
    }

    pub(super) fn hear(&self, rank: usize, report: LoadReport, at: Duration) {
        self.change(|state| state.ledger.hear(rank, report, at));
    }

    pub(super) fn keep_ranks(&self, ranks: &[usize]) {
        self.change(|state| state.ledger.keep_ranks(ranks));
    }

    /// Forgets reports made before this. Answers whether any was.
    pub(super) fn expire(&self, before: Duration) -> bool {
        self.change(|state| state.ledger.expire(before))
    }

    /// Answers whether it was otherwise before.
    pub(super) fn set_up(&self, up: bool) -> bool {
        self.change(|state| std::mem::replace(&mut state.up, up) != up)
    }

    /// Answers whether they were others before.
    pub(super) fn set_models(&self, models: Option<Vec<Arc<str>>>) -> bool {
        let mut state = self.lock();
        let changed = state.models != models;
        state.models = models;
        changed
    }

    pub(super) fn models(&self) -> Option<Vec<Arc<str>>> {
        self.lock().models.clone()
    }

    /// Puts it on these boards, and takes it off all others.
    pub(super) fn sit(&self, seats: Vec<(Arc<Board>, usize)>) {
        let seats = seats.into_iter().map(|(board, place)| {
            let limits = board.model.limits();
            Seat { board, place, limits, shown: None }
        });
        self.change(|state| state.seats = seats.collect());
    }

    /// Shows itself again: a threshold changed.
    pub(super) fn refresh(&self) {
        self.change(|state| {
            for seat in &mut state.seats {
                seat.limits = seat.board.model.limits();
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

    pub(super) fn with_ledger<R>(&self, read: impl FnOnce(&WorkerLedger) -> R) -> R {
        read(&self.lock().ledger)
    }

    /// Two words that are read apart: between two estimates one may see half of each, which is an estimate too.
    fn latency(&self) -> Latency {
        Latency::from_words([0, 1].map(|index: usize| self.latency[index].load(Ordering::Relaxed)))
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        self.in_flight.store(state.ledger.outstanding(), Ordering::Relaxed);
        let requests = state.ledger.requests();
        self.requests.store(requests, Ordering::Relaxed);
        state.show(requests);
        result
    }

    /// A panic while the lock is held leaves sums that are right: every change to them is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl State ===

impl State {
    fn show(&mut self, requests: u64) {
        for seat in &mut self.seats {
            let standing = |thresholds: &_| self.ledger.standing(Charge::LEAST, thresholds);
            let shown = Shown { up: self.up, standings: seat.limits.standings(standing) };
            if seat.shown != Some(shown) {
                seat.board.show(seat.place, shown);
                seat.shown = Some(shown);
            }
            seat.board.show_load(seat.place, shown, requests);
        }
    }
}
