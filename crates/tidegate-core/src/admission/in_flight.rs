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

/// What every admission writes, apart from the limits, which are only ever read. In this order the word and
/// the usual outcomes share one cache line: a permit that ends has just fetched the line it counts on.
#[derive(Debug)]
#[repr(C, align(128))]
struct Hot {
    lanes: AtomicU64,
    ends: Ends,
    /// Critical messages in flight beyond what the lane can count.
    critical_spill: AtomicU64,
}

/// The right to execute now. Ends in exactly one [`Outcome`]: the one that is told, or
/// [`Outcome::Ignored`] when it is dropped, also by a panic or a cancelled task.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once admits nothing"]
pub struct Permit<T: Deref<Target = InFlightTracker>> {
    tracker: T,
    priority: MessagePriority,
    place: Place,
    outcome: Outcome,
}

/// A [`Permit`] that keeps its tracker alive, for work that outlives the borrow.
pub type OwnedPermit = Permit<Arc<InFlightTracker>>;

/// How a permit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The work was done; its duration says something about the load.
    Success,
    /// It ended in a way that says nothing about the load: the client left, the task panicked or was cancelled.
    Ignored,
    /// It failed in a way that overload causes: a timeout, a reset, a refusal further down.
    Dropped,
}

/// Where a permit is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
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

    /// Takes a place for a message of this priority, or `None` when a limit is reached.
    ///
    /// Critical always gets one. Use [`try_admit`](Self::try_admit) to learn which limit refused.
    #[inline]
    pub fn try_acquire(&self, priority: MessagePriority) -> Option<Permit<&Self>> {
        self.try_admit(priority).ok()
    }

    /// As [`try_acquire`](Self::try_acquire), with a permit that owns a reference to the tracker.
    #[inline]
    pub fn try_acquire_owned(self: &Arc<Self>, priority: MessagePriority) -> Option<OwnedPermit> {
        self.try_admit_owned(priority).ok()
    }

    /// Takes a place for a message of this priority.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] that names the limit. It is counted as shed; nothing else has changed.
    #[inline]
    pub fn try_admit(&self, priority: MessagePriority) -> Result<Permit<&Self>, Refusal> {
        let place = self.take(priority)?;
        Ok(Permit { tracker: self, priority, place, outcome: Outcome::Ignored })
    }

    /// As [`try_admit`](Self::try_admit), with a permit that owns a reference to the tracker.
    ///
    /// # Errors
    ///
    /// As [`try_admit`](Self::try_admit).
    #[inline]
    pub fn try_admit_owned(
        self: &Arc<Self>,
        priority: MessagePriority,
    ) -> Result<OwnedPermit, Refusal> {
        let place = self.take(priority)?;
        Ok(Permit { tracker: Arc::clone(self), priority, place, outcome: Outcome::Ignored })
    }

    /// A place beyond all limits, for whoever only wants to know what a limit would have refused. `None` when
    /// 65,535 of this priority are in flight, which is all that can be counted.
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
                    let (tracker, place) = (Arc::clone(self), Place::Lane);
                    return Some(Permit { tracker, priority, place, outcome: Outcome::Ignored });
                }
                Err(current) => word = current,
            }
        }
        None
    }

    /// The limits this tracker enforces.
    #[must_use]
    pub fn limits(&self) -> &PriorityLimits {
        &self.limits
    }

    /// What is in flight at this moment, all four counts of one instant.
    ///
    /// Critical beyond 65,535 is not in here; [`stats`](Self::stats) has it.
    #[must_use]
    pub fn lanes(&self) -> Lanes {
        Lanes::from_word(self.hot.lanes.load(Ordering::Acquire))
    }

    /// What a message of this priority would be told at this moment. Nothing is taken and nothing counted, so
    /// it is no promise: another may be faster.
    ///
    /// # Errors
    ///
    /// The limit that would refuse it.
    pub fn would_admit(&self, priority: MessagePriority) -> Result<(), Reason> {
        self.rules.admit(self.lanes(), priority)
    }

    /// How loaded this tracker is now.
    #[must_use]
    pub fn load_state(&self) -> LoadState {
        let lanes = self.lanes();
        let admitted = |priority| self.rules.admit(lanes, priority).is_ok();
        LoadState::from_admission(admitted(MessagePriority::Low), admitted(MessagePriority::Normal))
    }

    /// Everything there is to know, for people and for machines. Totals never run backwards.
    #[must_use]
    pub fn stats(&self) -> PriorityLoadStats {
        // Read before the lanes: see `Totals` on why the order matters.
        let finished = self.hot.ends.totals();
        let lanes = self.lanes();
        let spill = self.hot.critical_spill.load(Ordering::Acquire);
        self.totals.snapshot(finished, lanes, spill, &self.limits)
    }

    #[inline]
    fn take(&self, priority: MessagePriority) -> Result<Place, Refusal> {
        let mut word = self.hot.lanes.load(Ordering::Relaxed);
        loop {
            let lanes = Lanes::from_word(word);
            if let Err(reason) = self.rules.admit(lanes, priority) {
                return Err(self.refuse(priority, reason));
            }
            if priority == MessagePriority::Critical && lanes.of(priority) == Lanes::LANE_MAX {
                self.hot.critical_spill.fetch_add(1, Ordering::AcqRel);
                return Ok(Place::Spill);
            }
            let next = word + Lanes::unit(priority);
            match self.hot.lanes.compare_exchange_weak(
                word,
                next,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(Place::Lane),
                Err(current) => word = current,
            }
        }
    }

    fn refuse(&self, priority: MessagePriority, reason: Reason) -> Refusal {
        self.totals.count_refusal(priority, reason);
        Refusal { priority, reason }
    }

    fn give_back(&self, priority: MessagePriority, place: Place, outcome: Outcome) {
        match place {
            Place::Lane => self.hot.lanes.fetch_sub(Lanes::unit(priority), Ordering::AcqRel),
            Place::Spill => self.hot.critical_spill.fetch_sub(1, Ordering::AcqRel),
        };
        // After the place is free, never before: see `Totals`.
        self.hot.ends.count(priority, outcome);
    }
}

// === impl Permit ===

impl<T: Deref<Target = InFlightTracker>> Permit<T> {
    /// The priority this was granted for.
    #[must_use]
    pub fn priority(&self) -> MessagePriority {
        self.priority
    }

    /// Ends the permit: the work was done.
    pub fn success(self) {
        self.finish(Outcome::Success);
    }

    /// Ends the permit: nothing can be learned from how it went. The same as dropping it.
    pub fn ignored(self) {
        self.finish(Outcome::Ignored);
    }

    /// Ends the permit: it failed as overload makes things fail.
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
        self.tracker.give_back(self.priority, self.place, self.outcome);
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

    /// This outcome's place in an array.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}
