use super::refused::{ExecuteRefused, ReserveRefused};
use crate::task::ExecutionKey;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The slots of one executor, as the executor itself keeps them: the last word on its capacity.
///
/// Every method is one step: what it decides is in force when it returns, so that a caller who asks before its
/// first await can't be raced. `now` is the executor's monotonic clock.
///
/// - Running and reserved together are never more than `max`.
/// - Each grant has a fence, higher than any before; a word with another fence changes nothing.
/// - A key that is asked for twice is granted once, and gets the first answer again.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::capacity::{ExecuteRefused, ExecutorSlots};
///
/// let mut slots = ExecutorSlots::new(1, 100);
/// let (one, two) = ("one@1".parse()?, "two@1".parse()?);
/// let now = Duration::ZERO;
/// let granted = slots.execute(&one, 7, None, None, now)?;
/// assert!(granted.first);
/// assert!(!slots.execute(&one, 7, None, None, now)?.first, "the same again");
/// assert_eq!(slots.execute(&two, 8, None, None, now), Err(ExecuteRefused::Full));
/// assert!(slots.finish(&one, granted.fence));
/// assert!(slots.execute(&two, 8, None, None, now)?.fence > granted.fence);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExecutorSlots {
    max: u32,
    fence_next: u64,
    running: BTreeMap<ExecutionKey, Run>,
    reserved: BTreeMap<ExecutionKey, Reservation>,
    past: BTreeMap<ExecutionKey, Past>,
    /// What is over, and what was cancelled before it came: the oldest first, and each within its own bound.
    /// Cancelling what nobody sends must not make the executor forget what it has run.
    ended_order: VecDeque<ExecutionKey>,
    cancelled_order: VecDeque<ExecutionKey>,
    past_max: usize,
}

/// A slot that is kept for an execution which has yet to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reservation {
    /// Its fence, and its name.
    pub fence: u64,
    /// Until when it is kept, by the executor's clock.
    pub expires_at: Duration,
}

/// A slot that is an execution's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Its fence.
    pub fence: u64,
    /// Whether it is to be started; otherwise it was before, and this is the same answer again.
    pub first: bool,
}

/// What was found when an execution was to be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It runs, and has to be stopped; its slot is taken until it is.
    Running {
        /// Its fence.
        fence: u64,
    },
    /// It had ended.
    Ended,
    /// It had not come yet, and will be refused when it does.
    Ahead,
}

/// How full an executor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Executions that hold a slot.
    pub running: u32,
    /// Slots that are kept for executions to come.
    pub reserved: u32,
    /// All slots.
    pub max: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Run {
    fence: u64,
    fingerprint: u64,
    reservation: Option<u64>,
    lease: Lease,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lease {
    /// It runs to its end, whoever asks.
    Without,
    Held {
        ttl: Duration,
        expires_at: Duration,
    },
    /// It ran out and was named: the execution is being stopped.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Past {
    Ended { fence: u64, fingerprint: u64, reservation: Option<u64> },
    Cancelled,
}

// === impl ExecutorSlots ===

impl ExecutorSlots {
    /// How many executions are remembered that are over. An answer that was lost is asked for again within
    /// seconds.
    pub const PAST_MAX: usize = 4_096;

    /// So many slots, all free. The first fence is one above `fence_floor`, which has to be higher than every
    /// fence that an earlier life of this executor has given.
    #[must_use]
    pub fn new(max: u32, fence_floor: u64) -> Self {
        Self {
            max,
            fence_next: fence_floor.saturating_add(1),
            running: BTreeMap::new(),
            reserved: BTreeMap::new(),
            past: BTreeMap::new(),
            ended_order: VecDeque::new(),
            cancelled_order: VecDeque::new(),
            past_max: Self::PAST_MAX,
        }
    }

    /// The same, remembering at most so many executions that are over, and as many that were cancelled before they
    /// came.
    #[must_use]
    pub fn remembering(mut self, past_max: usize) -> Self {
        self.past_max = past_max;
        self
    }

    /// How full it is. Reservations that have run out don't count.
    #[must_use]
    pub fn occupancy(&self, now: Duration) -> Occupancy {
        let live = self.reserved.values().filter(|held| held.expires_at > now);
        Occupancy {
            running: count(self.running.len()),
            reserved: count(live.count()),
            max: self.max,
        }
    }

    /// Keeps a slot for an execution that is to come within `ttl`. Asked again for the same, it gives the same
    /// one.
    ///
    /// # Errors
    ///
    /// When all slots are taken, or when the execution has come already.
    pub fn reserve(
        &mut self,
        key: &ExecutionKey,
        ttl: Duration,
        now: Duration,
    ) -> Result<Reservation, ReserveRefused> {
        self.expire_reservations(now);
        if let Some(held) = self.reserved.get(key) {
            return Ok(*held);
        }
        if self.running.contains_key(key) {
            return Err(ReserveRefused::Started);
        }
        match self.past.get(key) {
            Some(Past::Ended { .. }) => return Err(ReserveRefused::Started),
            Some(Past::Cancelled) => return Err(ReserveRefused::Cancelled),
            None => {}
        }
        if self.taken() >= self.max {
            return Err(ReserveRefused::Full);
        }
        let held = Reservation { fence: self.take_fence(), expires_at: now.saturating_add(ttl) };
        self.reserved.insert(key.clone(), held);
        Ok(held)
    }

    /// Gives an execution its slot: the one that was reserved for it, or a free one.
    ///
    /// The fingerprint tells whether a second request with the same key asks for the same. With a lease, an
    /// execution of which nobody asks for so long is to be stopped: [`expire`](Self::expire) names it.
    ///
    /// # Errors
    ///
    /// When all slots are taken, the reservation is not there any more, the execution was cancelled before it
    /// came, or the key stands for something else.
    pub fn execute(
        &mut self,
        key: &ExecutionKey,
        fingerprint: u64,
        reservation: Option<u64>,
        lease: Option<Duration>,
        now: Duration,
    ) -> Result<Granted, ExecuteRefused> {
        self.expire_reservations(now);
        if let Some(again) = self.known(key, fingerprint, reservation) {
            return again.map(|fence| Granted { fence, first: false });
        }
        let held = self.reserved.get(key).copied();
        let fence = match (reservation, held) {
            (Some(asked), Some(held)) if held.fence == asked => held.fence,
            (Some(_), _) => return Err(ExecuteRefused::Gone),
            // Without its number, but it is this execution's slot all the same.
            (None, Some(held)) => held.fence,
            (None, None) if self.taken() < self.max => self.take_fence(),
            (None, None) => return Err(ExecuteRefused::Full),
        };
        let reservation = self.reserved.remove(key).map(|held| held.fence);
        let lease = lease.map_or(Lease::Without, |ttl| Lease::held(ttl, now));
        self.running.insert(key.clone(), Run { fence, fingerprint, reservation, lease });
        Ok(Granted { fence, first: true })
    }

    fn known(
        &self,
        key: &ExecutionKey,
        fingerprint: u64,
        reservation: Option<u64>,
    ) -> Option<Result<u64, ExecuteRefused>> {
        let (fence, first, first_reservation) = match (self.running.get(key), self.past.get(key)) {
            (Some(run), _) => (run.fence, run.fingerprint, run.reservation),
            (None, Some(Past::Cancelled)) => return Some(Err(ExecuteRefused::Cancelled)),
            (None, Some(Past::Ended { fence, fingerprint, reservation })) => {
                (*fence, *fingerprint, *reservation)
            }
            (None, None) => return None,
        };
        if first != fingerprint {
            return Some(Err(ExecuteRefused::Conflict));
        }
        // A reservation that is not the one it was committed with has run out, and was another's.
        match reservation.is_none_or(|asked| first_reservation == Some(asked)) {
            true => Some(Ok(fence)),
            false => Some(Err(ExecuteRefused::Gone)),
        }
    }

    /// An execution is over, and its slot free. False, and nothing changes, when that fence does not hold a slot:
    /// it was over before, or the word is about another life of it.
    pub fn finish(&mut self, key: &ExecutionKey, fence: u64) -> bool {
        let Some(run) = self.running.get(key).filter(|run| run.fence == fence).copied() else {
            return false;
        };
        self.running.remove(key);
        let Run { fence, fingerprint, reservation, .. } = run;
        self.remember(key, Past::Ended { fence, fingerprint, reservation });
        true
    }

    /// Gives a reservation back. False, and nothing changes, when it is not there any more or is another's.
    pub fn unreserve(&mut self, key: &ExecutionKey, fence: u64) -> bool {
        let own = self.reserved.get(key).is_some_and(|held| held.fence == fence);
        if own {
            self.reserved.remove(key);
        }
        own
    }

    /// Somebody still asks for an execution: its lease starts anew, and never ends earlier than before. False when
    /// that fence holds no slot, or when the lease has run out, also where [`expire`](Self::expire) has yet to
    /// name it. Without a fence, whoever knows the key may renew.
    pub fn renew(&mut self, key: &ExecutionKey, fence: Option<u64>, now: Duration) -> bool {
        let Some(run) = self.running.get_mut(key) else { return false };
        if fence.is_some_and(|fence| fence != run.fence) {
            return false;
        }
        match &mut run.lease {
            Lease::Without => true,
            Lease::Held { ttl, expires_at } if *expires_at > now => {
                *expires_at = (*expires_at).max(now.saturating_add(*ttl));
                true
            }
            Lease::Held { .. } | Lease::Over => false,
        }
    }

    /// An execution is not wanted. What has not come yet is refused when it comes, so that a request which is
    /// still on its way can't start it.
    pub fn cancel(&mut self, key: &ExecutionKey) -> Cancelled {
        if let Some(run) = self.running.get(key) {
            return Cancelled::Running { fence: run.fence };
        }
        self.reserved.remove(key);
        match self.past.get(key) {
            Some(Past::Ended { .. }) => Cancelled::Ended,
            Some(Past::Cancelled) => Cancelled::Ahead,
            None => {
                self.remember(key, Past::Cancelled);
                Cancelled::Ahead
            }
        }
    }

    /// Frees the slots of reservations that have run out, and names the executions whose lease has: those are to
    /// be stopped, and hold their slot until they are.
    pub fn expire(&mut self, now: Duration) -> Vec<(ExecutionKey, u64)> {
        self.expire_reservations(now);
        let mut out = Vec::new();
        for (key, run) in &mut self.running {
            if run.lease.expires_at().is_some_and(|expires_at| expires_at <= now) {
                run.lease = Lease::Over;
                out.push((key.clone(), run.fence));
            }
        }
        out
    }

    /// Frees the slots of reservations that have run out, and says how many. Every other method does so first.
    pub fn expire_reservations(&mut self, now: Duration) -> usize {
        let before = self.reserved.len();
        self.reserved.retain(|_, held| held.expires_at > now);
        before - self.reserved.len()
    }

    /// When [`expire`](Self::expire) will next have something to do.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Duration> {
        let leases = self.running.values().filter_map(|run| run.lease.expires_at());
        leases.chain(self.reserved.values().map(|held| held.expires_at)).min()
    }

    /// The executions that hold a slot, with their fences.
    pub fn running(&self) -> impl Iterator<Item = (&ExecutionKey, u64)> {
        self.running.iter().map(|(key, run)| (key, run.fence))
    }

    fn taken(&self) -> u32 {
        count(self.running.len() + self.reserved.len())
    }

    fn take_fence(&mut self) -> u64 {
        let fence = self.fence_next;
        self.fence_next += 1;
        fence
    }

    /// A key is remembered once: what has ended can't be cancelled before it comes, nor the other way round.
    fn remember(&mut self, key: &ExecutionKey, past: Past) {
        let order = match past {
            Past::Ended { .. } => &mut self.ended_order,
            Past::Cancelled => &mut self.cancelled_order,
        };
        self.past.insert(key.clone(), past);
        order.push_back(key.clone());
        while order.len() > self.past_max {
            if let Some(oldest) = order.pop_front() {
                self.past.remove(&oldest);
            }
        }
    }
}

// === impl Lease ===

impl Lease {
    fn held(ttl: Duration, now: Duration) -> Self {
        Self::Held { ttl, expires_at: now.saturating_add(ttl) }
    }

    fn expires_at(self) -> Option<Duration> {
        match self {
            Self::Held { expires_at, .. } => Some(expires_at),
            Self::Without | Self::Over => None,
        }
    }
}

// === impl Occupancy ===

impl Occupancy {
    /// Slots that nobody has.
    #[must_use]
    pub fn free(self) -> u32 {
        self.max.saturating_sub(self.running + self.reserved)
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
