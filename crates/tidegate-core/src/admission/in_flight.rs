use super::limits::Rules;
use super::stats::{Ends, Totals};
use super::{
    Lanes, LoadState, MessagePriority, PriorityLimits, PriorityLoadStats, Reason, Refusal, Sharing,
};
use crate::sync::{AtomicU64, Ordering};
use std::ops::Deref;
use std::sync::Arc;

/// Admits messages for immediate execution within exact limits, by priority.
///
/// Synchronous and lock-free: all four counts are in one word, and both limits are checked against one value
/// of it, so no race admits one more than a limit says. An admission is one compare-and-swap; a refusal
/// changes nothing but a counter.
#[derive(Debug)]
pub struct InFlightTracker {
    hot: Hot,
    limits: PriorityLimits,
    rules: Rules,
    totals: Totals,
}

/// Counters that every admission writes, apart from the limits, which are only read. In this order the word and
/// the outcome counters share one cache line: a permit that ends has already fetched the line of its counter.
#[derive(Debug)]
#[repr(C, align(128))]
struct Hot {
    lanes: AtomicU64,
    ends: Ends,
    /// Critical messages in flight beyond what the lane can count.
    critical_spill: AtomicU64,
}

/// The right to execute now. Ends in exactly one [`Outcome`]: the one that its holder names, or
/// [`Outcome::Ignored`] when it is dropped, also by a panic or a cancelled task.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once admits nothing"]
pub struct Permit<T: Deref<Target = InFlightTracker>> {
    tracker: T,
    priority: MessagePriority,
    counter: Counter,
    outcome: Outcome,
}

/// A [`Permit`] that keeps its tracker alive, for work that outlives the borrow.
pub type OwnedPermit = Permit<Arc<InFlightTracker>>;

/// The way in which a permit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The work was done; its duration says something about the load.
    Success,
    /// The work ended in a way that says nothing about the load: the client left, the task panicked or was
    /// cancelled.
    Ignored,
    /// The work failed in a way that overload causes: a timeout, a reset, a refusal further down.
    Dropped,
}

/// The counter that a permit occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    Lane,
    Spill,
}

// === impl InFlightTracker ===

impl InFlightTracker {
    /// A tracker with nothing in flight.
    #[must_use]
    pub fn new(limits: PriorityLimits, sharing: Sharing) -> Self {
        Self {
            hot: Hot {
                lanes: AtomicU64::new(Lanes::EMPTY.word()),
                ends: Ends::new(),
                critical_spill: AtomicU64::new(0),
            },
            limits,
            rules: Rules::new(limits, sharing),
            totals: Totals::new(),
        }
    }

    /// Admits a message of this priority, or names the limit that refuses it. Critical is always admitted.
    ///
    /// Where only the permit matters, add `.ok()`: the refusal is two bytes, and building it allocates nothing.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] that names the limit. The tracker counts it as shed; nothing else has changed.
    #[inline]
    pub fn try_acquire(&self, priority: MessagePriority) -> Result<Permit<&Self>, Refusal> {
        let counter = self.take(priority)?;
        Ok(Permit { tracker: self, priority, counter, outcome: Outcome::Ignored })
    }

    /// Does the same as [`try_acquire`](Self::try_acquire), with a permit that owns a reference to the tracker.
    ///
    /// # Errors
    ///
    /// As [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_owned(
        self: &Arc<Self>,
        priority: MessagePriority,
    ) -> Result<OwnedPermit, Refusal> {
        let counter = self.take(priority)?;
        Ok(Permit { tracker: Arc::clone(self), priority, counter, outcome: Outcome::Ignored })
    }

    /// Admits a message beyond all limits: for a dry run, which only reports what a limit would have refused.
    /// `None` when 65,535 of this priority are in flight, the largest count of a lane.
    pub fn admit_beyond_limits(self: &Arc<Self>, priority: MessagePriority) -> Option<OwnedPermit> {
        let mut word = self.hot.lanes.load(Ordering::Relaxed);
        while Lanes::from_word(word).of(priority) < Lanes::LANE_MAX {
            let next = word + Lanes::unit(priority);
            match self.hot.lanes.compare_exchange_weak(
                word,
                next,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => {
                    let (tracker, counter) = (Arc::clone(self), Counter::Lane);
                    return Some(Permit { tracker, priority, counter, outcome: Outcome::Ignored });
                }
                Err(current) => word = current,
            }
        }
        None
    }

    /// The limits that this tracker enforces.
    #[must_use]
    pub fn limits(&self) -> &PriorityLimits {
        &self.limits
    }

    /// The messages in flight at this moment, by priority: four counts of one instant.
    ///
    /// Critical beyond 65,535 is not included; [`stats`](Self::stats) has it.
    #[must_use]
    pub fn lanes(&self) -> Lanes {
        Lanes::from_word(self.hot.lanes.load(Ordering::Acquire))
    }

    /// The decision for a message of this priority at this moment. Nothing is acquired and nothing is counted, so
    /// a later [`try_acquire`](Self::try_acquire) may decide otherwise.
    ///
    /// # Errors
    ///
    /// The limit that would refuse it.
    pub fn would_admit(&self, priority: MessagePriority) -> Result<(), Reason> {
        self.rules.admit(self.lanes(), priority)
    }

    /// The load state of this tracker now.
    #[must_use]
    pub fn load_state(&self) -> LoadState {
        let lanes = self.lanes();
        let admitted = |priority| self.rules.admit(lanes, priority).is_ok();
        LoadState::from_admission(admitted(MessagePriority::Low), admitted(MessagePriority::Normal))
    }

    /// A snapshot of all counts and totals. Totals never decrease.
    #[must_use]
    pub fn stats(&self) -> PriorityLoadStats {
        // Read before the lanes: see `Totals` on why the order matters.
        let finished = self.hot.ends.totals();
        let lanes = self.lanes();
        let spill = self.hot.critical_spill.load(Ordering::Acquire);
        self.totals.snapshot(finished, lanes, spill, &self.limits)
    }

    #[inline]
    fn take(&self, priority: MessagePriority) -> Result<Counter, Refusal> {
        let mut word = self.hot.lanes.load(Ordering::Relaxed);
        loop {
            let lanes = Lanes::from_word(word);
            if let Err(reason) = self.rules.admit(lanes, priority) {
                return Err(self.refuse(priority, reason));
            }
            if priority == MessagePriority::Critical && lanes.of(priority) == Lanes::LANE_MAX {
                self.hot.critical_spill.fetch_add(1, Ordering::AcqRel);
                return Ok(Counter::Spill);
            }
            let next = word + Lanes::unit(priority);
            match self.hot.lanes.compare_exchange_weak(
                word,
                next,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(Counter::Lane),
                Err(current) => word = current,
            }
        }
    }

    fn refuse(&self, priority: MessagePriority, reason: Reason) -> Refusal {
        self.totals.count_refusal(priority, reason);
        Refusal { priority, reason }
    }

    fn give_back(&self, priority: MessagePriority, counter: Counter, outcome: Outcome) {
        match counter {
            Counter::Lane => self.hot.lanes.fetch_sub(Lanes::unit(priority), Ordering::AcqRel),
            Counter::Spill => self.hot.critical_spill.fetch_sub(1, Ordering::AcqRel),
        };
        // After the lane is decremented, never before: see `Totals`.
        self.hot.ends.count(priority, outcome);
    }
}

// === impl Permit ===

impl<T: Deref<Target = InFlightTracker>> Permit<T> {
    /// The priority that this permit was granted for.
    #[must_use]
    pub fn priority(&self) -> MessagePriority {
        self.priority
    }

    /// Ends the permit: the work was done.
    pub fn success(self) {
        self.finish(Outcome::Success);
    }

    /// Ends the permit: its end says nothing about the load. The same as dropping it.
    pub fn ignored(self) {
        self.finish(Outcome::Ignored);
    }

    /// Ends the permit: the work failed in a way that overload causes.
    pub fn dropped(self) {
        self.finish(Outcome::Dropped);
    }

    /// Ends the permit with an outcome chosen at run time.
    pub fn finish(mut self, outcome: Outcome) {
        self.outcome = outcome;
    }
}

impl<T: Deref<Target = InFlightTracker>> Drop for Permit<T> {
    #[inline]
    fn drop(&mut self) {
        self.tracker.give_back(self.priority, self.counter, self.outcome);
    }
}

// === impl Outcome ===

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 3] = [Self::Success, Self::Ignored, Self::Dropped];

    /// The name used in labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Ignored => "ignored",
            Self::Dropped => "dropped",
        }
    }

    /// The index of this outcome in an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}
