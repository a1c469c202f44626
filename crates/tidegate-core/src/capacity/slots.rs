use super::refused::{ExecuteRefused, ReserveRefused};
use crate::task::ExecutionKey;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Slots of one executor, counted by the executor itself: its decision is final.
///
/// Every method is one atomic step: a caller that decides before its first await can't be raced. `now` is the
/// executor's monotonic clock.
///
/// - Running and reserved together are never more than `max`.
/// - Each grant has a fence, higher than any before; a request with another fence changes nothing.
/// - A repeated request for a key is granted once, and gets the first answer again.
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
    /// Keys that ended, and keys cancelled before they arrived, oldest first, each with its own bound: cancelling
    /// unknown keys must not evict the record of real executions.
    ended_order: VecDeque<ExecutionKey>,
    cancelled_order: VecDeque<ExecutionKey>,
    past_max: usize,
}

/// Slot reserved for an execution that has not arrived yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reservation {
    /// Fence, which also identifies the reservation.
    pub fence: u64,
    /// End of the reservation, by the executor's clock.
    pub expires_at: Duration,
}

/// Slot granted to an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Fence of the grant.
    pub fence: u64,
    /// True if the execution is to be started; false if it was started before and this repeats the answer.
    pub first: bool,
}

/// State found when an execution was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// Running: the caller has to stop it, and its slot stays in use until then.
    Running {
        /// Fence of the running execution.
        fence: u64,
    },
    /// Reserved: the slot is free again, and the executor will refuse the execution.
    Reserved,
    /// Already ended.
    Ended,
    /// Not arrived yet; the executor will refuse it.
    BeforeArrival,
}

/// Occupancy of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Executions that hold a slot.
    pub running: u32,
    /// Slots reserved for executions that have not arrived.
    pub reserved: u32,
    /// Number of slots.
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
    /// Runs to its end without renewals.
    Unlimited,
    Held {
        ttl: Duration,
        expires_at: Duration,
    },
    /// Expired and returned by [`expire`](ExecutorSlots::expire): the execution is being stopped.
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Past {
    Ended { fence: u64, fingerprint: u64, reservation: Option<u64> },
    Cancelled,
}

// === impl ExecutorSlots ===

impl ExecutorSlots {
    /// Ended executions that are remembered. A lost answer is asked for again within seconds.
    pub const PAST_MAX: usize = 4_096;

    /// Creates `max` free slots. `fence_floor` must be at least the highest fence given before a restart; the
    /// first fence is one above it.
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

    /// Sets the number of ended executions to remember, and of those cancelled before they arrived.
    #[must_use]
    pub fn with_past_max(mut self, past_max: usize) -> Self {
        self.past_max = past_max;
        self
    }

    /// Current occupancy. Expired reservations don't count.
    #[must_use]
    pub fn occupancy(&self, now: Duration) -> Occupancy {
        let live = self.reserved.values().filter(|reserved| reserved.expires_at > now);
        Occupancy {
            running: count(self.running.len()),
            reserved: count(live.count()),
            max: self.max,
        }
    }

    /// Reserves a slot for an execution that arrives within `ttl`. A repeated request returns the same
    /// reservation.
    ///
    /// # Errors
    ///
    /// If all slots are in use, or the execution has arrived already.
    pub fn reserve(
        &mut self,
        key: &ExecutionKey,
        ttl: Duration,
        now: Duration,
    ) -> Result<Reservation, ReserveRefused> {
        self.expire_reservations(now);
        if let Some(reserved) = self.reserved.get(key) {
            return Ok(*reserved);
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
        let reserved =
            Reservation { fence: self.take_fence(), expires_at: now.saturating_add(ttl) };
        self.reserved.insert(key.clone(), reserved);
        Ok(reserved)
    }

    /// Grants an execution its slot: the reserved one, or a free one.
    ///
    /// The fingerprint distinguishes a repeated request from a different one with the same key. With a lease, an
    /// execution that is not renewed in time has to be stopped: [`expire`](Self::expire) returns it.
    ///
    /// # Errors
    ///
    /// If all slots are in use, the reservation no longer exists, the execution was cancelled before it arrived,
    /// or the key belongs to a different request.
    pub fn execute(
        &mut self,
        key: &ExecutionKey,
        fingerprint: u64,
        reservation: Option<u64>,
        lease: Option<Duration>,
        now: Duration,
    ) -> Result<Granted, ExecuteRefused> {
        self.expire_reservations(now);
        if let Some(again) = self.first_answer(key, fingerprint, reservation) {
            return again.map(|fence| Granted { fence, first: false });
        }
        let reserved = self.reserved.get(key).copied();
        let fence = match (reservation, reserved) {
            (Some(requested), Some(reserved)) if reserved.fence == requested => reserved.fence,
            (Some(_), _) => return Err(ExecuteRefused::Gone),
            // The request names no reservation, but the slot is reserved for this execution.
            (None, Some(reserved)) => reserved.fence,
            (None, None) if self.taken() < self.max => self.take_fence(),
            (None, None) => return Err(ExecuteRefused::Full),
        };
        let reservation = self.reserved.remove(key).map(|reserved| reserved.fence);
        let lease = lease.map_or(Lease::Unlimited, |ttl| Lease::starting(ttl, now));
        self.running.insert(key.clone(), Run { fence, fingerprint, reservation, lease });
        Ok(Granted { fence, first: true })
    }

    fn first_answer(
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
        // A reservation other than the one it started with has expired.
        match reservation.is_none_or(|requested| first_reservation == Some(requested)) {
            true => Some(Ok(fence)),
            false => Some(Err(ExecuteRefused::Gone)),
        }
    }

    /// Ends an execution and frees its slot. Returns false and changes nothing if `fence` holds no slot.
    pub fn finish(&mut self, key: &ExecutionKey, fence: u64) -> bool {
        let Some(run) = self.running.get(key).filter(|run| run.fence == fence).copied() else {
            return false;
        };
        self.running.remove(key);
        let Run { fence, fingerprint, reservation, .. } = run;
        self.remember(key, Past::Ended { fence, fingerprint, reservation });
        true
    }

    /// Releases a reservation. Returns false and changes nothing if it no longer exists or has another fence.
    pub fn unreserve(&mut self, key: &ExecutionKey, fence: u64) -> bool {
        let own = self.reserved.get(key).is_some_and(|reserved| reserved.fence == fence);
        if own {
            self.reserved.remove(key);
        }
        own
    }

    /// Renews the lease of an execution, never shortening it. Returns false if `fence` holds no slot or the lease
    /// has expired, even if [`expire`](Self::expire) has not returned it yet. Unlimited a fence, the key alone
    /// suffices.
    pub fn renew(&mut self, key: &ExecutionKey, fence: Option<u64>, now: Duration) -> bool {
        let Some(run) = self.running.get_mut(key) else { return false };
        if fence.is_some_and(|fence| fence != run.fence) {
            return false;
        }
        match &mut run.lease {
            Lease::Unlimited => true,
            Lease::Held { ttl, expires_at } if *expires_at > now => {
                *expires_at = (*expires_at).max(now.saturating_add(*ttl));
                true
            }
            Lease::Held { .. } | Lease::Expired => false,
        }
    }

    /// Cancels an execution. One that has not arrived yet is refused when it arrives, so that a delayed request
    /// can't start it.
    pub fn cancel(&mut self, key: &ExecutionKey) -> Cancelled {
        if let Some(run) = self.running.get(key) {
            return Cancelled::Running { fence: run.fence };
        }
        let was_reserved = self.reserved.remove(key).is_some();
        let is_past = self.past.get(key);
        if matches!(is_past, Some(Past::Ended { .. })) {
            return Cancelled::Ended;
        }
        if is_past.is_none() {
            self.remember(key, Past::Cancelled);
        }
        if was_reserved { Cancelled::Reserved } else { Cancelled::BeforeArrival }
    }

    /// Frees expired reservations, and returns the executions whose lease has expired: the caller stops them, and
    /// they hold their slot until they end.
    pub fn expire(&mut self, now: Duration) -> Vec<(ExecutionKey, u64)> {
        self.expire_reservations(now);
        let mut out = Vec::new();
        for (key, run) in &mut self.running {
            if run.lease.expires_at().is_some_and(|expires_at| expires_at <= now) {
                run.lease = Lease::Expired;
                out.push((key.clone(), run.fence));
            }
        }
        out
    }

    /// Frees expired reservations and returns their number. Every other method does this first.
    pub fn expire_reservations(&mut self, now: Duration) -> usize {
        let before = self.reserved.len();
        self.reserved.retain(|_, reserved| reserved.expires_at > now);
        before - self.reserved.len()
    }

    /// Time at which [`expire`](Self::expire) next has something to do.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Duration> {
        let leases = self.running.values().filter_map(|run| run.lease.expires_at());
        leases.chain(self.reserved.values().map(|reserved| reserved.expires_at)).min()
    }

    /// Executions that hold a slot, with their fences.
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

    /// Remembers a key once: an ended key can't be cancelled ahead of its arrival, nor the reverse.
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
    fn starting(ttl: Duration, now: Duration) -> Self {
        Self::Held { ttl, expires_at: now.saturating_add(ttl) }
    }

    fn expires_at(self) -> Option<Duration> {
        match self {
            Self::Held { expires_at, .. } => Some(expires_at),
            Self::Unlimited | Self::Expired => None,
        }
    }
}

// === impl Occupancy ===

impl Occupancy {
    /// Free slots.
    #[must_use]
    pub fn free(self) -> u32 {
        self.max.saturating_sub(self.running + self.reserved)
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
