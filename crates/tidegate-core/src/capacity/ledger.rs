use super::ledger_limits as limits;
use super::refused::LedgerRefused;
use super::slot_request::{Acquired, SlotLease, SlotRequest};
use crate::admission::MessagePriority;
use crate::task::ExecutionKey;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Slots of executors: their leases, and the queue of waiting holders.
///
/// Every method is one atomic step at the time `now` of the caller's clock. A freed slot goes to the first waiter
/// in the same step, under a new fence, until that waiter's queue entry would have expired. A free slot therefore
/// has no waiters, and a new holder can take it without overtaking anyone.
///
/// - An executor never has more leases than slots, except those held when it was declared with fewer slots.
/// - A lease or queue entry that is not renewed ends with its ttl.
/// - A holder has at most one lease. Fences only rise, and a request with another fence changes nothing.
/// - Everything is bounded: executors, slots, waiters, and executors per waiter.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::admission::MessagePriority::Normal;
/// use tidegate_core::capacity::{Acquired, SlotLedger, SlotRequest};
///
/// let mut ledger = SlotLedger::new(100);
/// let (now, ttl) = (Duration::ZERO, Duration::from_secs(30));
/// ledger.declare("one", 1, now)?;
/// let request = |holder: &str| {
///     let (holder, executors) = (holder.parse()?, vec!["one".into()]);
///     Ok::<_, tidegate_core::task::IdError>(SlotRequest { holder, priority: Normal, executors, ttl })
/// };
/// let Acquired::Granted(lease) = ledger.acquire(&request("a@1")?, now)? else { panic!("it is free") };
/// assert_eq!(ledger.acquire(&request("b@1")?, now)?, Acquired::Waiting { ahead: 0 });
/// assert!(ledger.release(&lease, now));
/// assert!(!ledger.release(&lease, now), "releasing twice is releasing once");
/// let Acquired::Granted(next) = ledger.acquire(&request("b@1")?, now)? else { panic!("its turn") };
/// assert!(next.fence > lease.fence);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotLedger {
    executors: BTreeMap<Box<str>, Declaration>,
    leases: BTreeMap<ExecutionKey, LeaseState>,
    lease_ends: BTreeSet<(Duration, ExecutionKey)>,
    holders: BTreeMap<Box<str>, BTreeSet<ExecutionKey>>,
    waiters: BTreeMap<ExecutionKey, Waiter>,
    waiter_ends: BTreeSet<(Duration, ExecutionKey)>,
    /// Waiters of each executor. A waiter for any of several executors is queued at each of them.
    queues: BTreeMap<Box<str>, BTreeSet<Turn>>,
    turns: BTreeMap<Turn, ExecutionKey>,
    /// Queue entries at all executors together.
    entries: usize,
    arrival_last: u64,
    fence_last: u64,
    changes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Declaration {
    slots: u32,
    until: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LeaseState {
    executor: Box<str>,
    fence: u64,
    ends_at: Duration,
    /// An answer that names the lease was sent to the holder.
    delivered: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Waiter {
    turn: Turn,
    executors: Vec<Box<str>>,
    ends_at: Duration,
}

/// Order within a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Turn {
    priority: MessagePriority,
    arrival: u64,
}

// === impl SlotLedger ===

impl SlotLedger {
    /// Maximum number of executors.
    pub const EXECUTORS_MAX: usize = limits::EXECUTORS_MAX;
    /// Maximum number of slots of one executor.
    pub const SLOTS_MAX: u32 = limits::SLOTS_MAX;
    /// Maximum length of an executor's name, in bytes.
    pub const NAME_BYTES_MAX: usize = limits::NAME_BYTES_MAX;
    /// Maximum number of executors in one request.
    pub const REQUEST_EXECUTORS_MAX: usize = limits::REQUEST_EXECUTORS_MAX;
    /// Maximum number of waiting holders.
    pub const WAITERS_MAX: usize = limits::WAITERS_MAX;
    /// Maximum number of queue entries at all executors together: a waiter for any of ten executors has ten
    /// entries.
    pub const QUEUE_ENTRIES_MAX: usize = limits::QUEUE_ENTRIES_MAX;
    /// Time until an executor that is not declared again is forgotten.
    pub const DECLARED_FOR: Duration = limits::DECLARED_FOR;
    /// Longest ttl: a slot that is never released returns within a day.
    pub const TTL_MAX: Duration = limits::TTL_MAX;

    /// Creates a ledger without executors. `fence_floor` must be at least the highest fence given before a
    /// restart; the first fence is one above it.
    #[must_use]
    pub fn new(fence_floor: u64) -> Self {
        Self {
            executors: BTreeMap::new(),
            leases: BTreeMap::new(),
            lease_ends: BTreeSet::new(),
            holders: BTreeMap::new(),
            waiters: BTreeMap::new(),
            waiter_ends: BTreeSet::new(),
            queues: BTreeMap::new(),
            turns: BTreeMap::new(),
            entries: 0,
            arrival_last: 0,
            fence_last: fence_floor,
            changes: 0,
        }
    }

    /// Rounds a ttl up to whole milliseconds, at least 1 ms and at most [`TTL_MAX`](Self::TTL_MAX).
    #[must_use]
    pub fn round_ttl(ttl: Duration) -> Duration {
        let ttl_ms = ttl.min(Self::TTL_MAX).as_nanos().div_ceil(1_000_000).max(1);
        Duration::from_millis(u64::try_from(ttl_ms).unwrap_or(u64::MAX))
    }

    /// Checks the form of a request.
    ///
    /// # Errors
    ///
    /// If the request names no executor, too many, or one with an invalid name.
    pub fn check(request: &SlotRequest) -> Result<(), LedgerRefused> {
        let given = request.executors.len();
        match given {
            0 => return Err(LedgerRefused::NoExecutor),
            _ if given > Self::REQUEST_EXECUTORS_MAX => {
                return Err(LedgerRefused::RequestTooWide { given });
            }
            _ => {}
        }
        request.executors.iter().try_for_each(|executor| check_name(executor))
    }

    /// Checks the form of a declaration.
    ///
    /// # Errors
    ///
    /// If the name is invalid or the number of slots too high.
    pub fn check_declaration(executor: &str, slots: u32) -> Result<(), LedgerRefused> {
        check_name(executor)?;
        match slots <= Self::SLOTS_MAX {
            true => Ok(()),
            false => Err(LedgerRefused::TooManySlots { given: slots }),
        }
    }

    /// Declares the slots of an executor for [`DECLARED_FOR`](Self::DECLARED_FOR) from now. Leases beyond a lower
    /// number stay, and are not granted again. Zero slots forget the executor.
    ///
    /// # Errors
    ///
    /// If the name is invalid, the number of slots too high, or too many executors are known.
    pub fn declare(
        &mut self,
        executor: &str,
        slots: u32,
        now: Duration,
    ) -> Result<(), LedgerRefused> {
        Self::check_declaration(executor, slots)?;
        self.expire(now);
        let before = self.slots(executor, now);
        if slots == 0 {
            self.executors.remove(executor);
            return Ok(());
        }
        if !self.executors.contains_key(executor) {
            self.executors.retain(|_, declared| declared.until > now);
            if self.executors.len() >= Self::EXECUTORS_MAX {
                return Err(LedgerRefused::TooManyExecutors);
            }
        }
        let until = now.saturating_add(Self::DECLARED_FOR);
        self.executors.insert(executor.into(), Declaration { slots, until });
        if slots > before {
            self.assign_free(executor, now);
        }
        Ok(())
    }

    /// Takes a slot, or queues the holder for one.
    ///
    /// A holder that asks again keeps its arrival order, also with other executors or another priority: it is then
    /// queued behind those who arrived before it.
    ///
    /// # Errors
    ///
    /// If the request is malformed or the queue is full. The ledger is unchanged.
    pub fn acquire(
        &mut self,
        request: &SlotRequest,
        now: Duration,
    ) -> Result<Acquired, LedgerRefused> {
        Self::check(request)?;
        self.expire(now);
        let SlotRequest { holder, executors, .. } = request;
        let ends_at = now.saturating_add(Self::round_ttl(request.ttl));
        if let Some(lease) = self.extend(holder, None, ends_at) {
            return Ok(Acquired::Granted(lease));
        }
        if let Some(executor) = executors.iter().find(|executor| self.has_free(executor, now)) {
            self.leave(holder);
            return Ok(Acquired::Granted(self.grant(holder, executor, ends_at, true)));
        }
        self.wait(request, ends_at)?;
        Ok(Acquired::Waiting { ahead: self.ahead(holder) })
    }

    /// Extends a lease to `ttl` from now, never shortening it. Returns false if the lease has ended.
    pub fn renew(&mut self, lease: &SlotLease, ttl: Duration, now: Duration) -> bool {
        self.expire(now);
        let ends_at = now.saturating_add(Self::round_ttl(ttl));
        self.extend(&lease.holder, Some(lease.fence), ends_at).is_some()
    }

    /// Releases a slot. Returns false if the lease had ended.
    pub fn release(&mut self, lease: &SlotLease, now: Duration) -> bool {
        self.expire(now);
        match self.leases.get(&lease.holder) {
            Some(granted) if granted.fence == lease.fence => self.end(&lease.holder, now),
            _ => false,
        }
    }

    /// Leaves the queue, and releases a slot that was granted meanwhile but not yet delivered. Returns false if
    /// there was neither.
    pub fn withdraw(&mut self, holder: &ExecutionKey, now: Duration) -> bool {
        self.expire(now);
        match self.leases.get(holder) {
            Some(granted) if !granted.delivered => self.end(holder, now),
            _ => self.leave(holder),
        }
    }

    /// Ends the leases of an executor with a fence up to `asked_after` whose holders it does not run. Returns
    /// their number.
    pub fn reconcile(
        &mut self,
        executor: &str,
        running: &[ExecutionKey],
        asked_after: u64,
        now: Duration,
    ) -> u64 {
        self.expire(now);
        let running: BTreeSet<_> = running.iter().collect();
        let old = |holder: &&ExecutionKey| {
            self.leases.get(holder).is_some_and(|granted| granted.fence <= asked_after)
        };
        let holders = self.holders.get(executor).into_iter().flatten();
        let gone: Vec<_> =
            holders.filter(|holder| !running.contains(holder)).filter(old).cloned().collect();
        for holder in &gone {
            self.remove_lease(holder);
        }
        if !gone.is_empty() {
            self.assign_free(executor, now);
        }
        gone.len() as u64
    }

    /// Highest fence given so far.
    #[must_use]
    pub fn latest_fence(&self) -> u64 {
        self.fence_last
    }

    /// Leased slots of an executor, including those granted to waiters.
    #[must_use]
    pub fn held(&mut self, executor: &str, now: Duration) -> u32 {
        self.expire(now);
        let leased = self.holders.get(executor).map_or(0, BTreeSet::len);
        u32::try_from(leased).unwrap_or(u32::MAX)
    }

    /// Number of waiting holders.
    #[must_use]
    pub fn waiting(&mut self, now: Duration) -> usize {
        self.expire(now);
        self.waiters.len()
    }

    /// Rises whenever a slot became free or was granted to a waiter.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Time at which the next lease or queue entry ends.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Duration> {
        let first = |ends: &BTreeSet<(Duration, ExecutionKey)>| ends.first().map(|first| first.0);
        first(&self.lease_ends).into_iter().chain(first(&self.waiter_ends)).min()
    }

    /// Ends what has expired and grants the freed slots to waiters. All other methods do this first.
    pub fn expire(&mut self, now: Duration) {
        // Queue entries first: a waiter whose entry has expired gets no slot.
        while let Some((_, holder)) = self.waiter_ends.first().filter(|first| first.0 <= now) {
            let holder = holder.clone();
            self.leave(&holder);
        }
        let mut freed = BTreeSet::new();
        while let Some((_, holder)) = self.lease_ends.first().filter(|first| first.0 <= now) {
            let holder = holder.clone();
            freed.extend(self.remove_lease(&holder));
        }
        for executor in freed {
            self.assign_free(&executor, now);
        }
    }

    fn slots(&self, executor: &str, now: Duration) -> u32 {
        let declared = self.executors.get(executor).filter(|declared| declared.until > now);
        declared.map_or(0, |declared| declared.slots)
    }

    fn has_free(&self, executor: &str, now: Duration) -> bool {
        let leased = self.holders.get(executor).map_or(0, BTreeSet::len);
        leased < self.slots(executor, now) as usize
    }

    /// Grants the free slots of an executor to its first waiters.
    fn assign_free(&mut self, executor: &str, now: Duration) {
        self.changes += 1;
        while self.has_free(executor, now) {
            let first = self.queues.get(executor).and_then(BTreeSet::first);
            let Some(holder) = first.and_then(|turn| self.turns.get(turn)).cloned() else { return };
            let Some(ends_at) = self.waiters.get(&holder).map(|waiter| waiter.ends_at) else {
                return;
            };
            self.leave(&holder);
            self.grant(&holder, executor, ends_at, false);
        }
    }

    fn grant(
        &mut self,
        holder: &ExecutionKey,
        executor: &str,
        ends_at: Duration,
        delivered: bool,
    ) -> SlotLease {
        self.fence_last += 1;
        let fence = self.fence_last;
        self.lease_ends.insert((ends_at, holder.clone()));
        self.holders.entry(executor.into()).or_default().insert(holder.clone());
        self.leases.insert(
            holder.clone(),
            LeaseState { executor: executor.into(), fence, ends_at, delivered },
        );
        SlotLease { holder: holder.clone(), executor: executor.into(), fence }
    }

    /// Extends a holder's lease, if it has one and `fence`, where given, matches.
    fn extend(
        &mut self,
        holder: &ExecutionKey,
        fence: Option<u64>,
        ends_at: Duration,
    ) -> Option<SlotLease> {
        let granted = self.leases.get_mut(holder)?;
        if fence.is_some_and(|fence| fence != granted.fence) {
            return None;
        }
        granted.delivered = true;
        if ends_at > granted.ends_at {
            self.lease_ends.remove(&(granted.ends_at, holder.clone()));
            self.lease_ends.insert((ends_at, holder.clone()));
            granted.ends_at = ends_at;
        }
        let (executor, fence) = (granted.executor.clone(), granted.fence);
        Some(SlotLease { holder: holder.clone(), executor, fence })
    }

    fn end(&mut self, holder: &ExecutionKey, now: Duration) -> bool {
        let Some(executor) = self.remove_lease(holder) else { return false };
        self.assign_free(&executor, now);
        true
    }

    fn remove_lease(&mut self, holder: &ExecutionKey) -> Option<Box<str>> {
        let LeaseState { executor, ends_at, .. } = self.leases.remove(holder)?;
        self.lease_ends.remove(&(ends_at, holder.clone()));
        if let Some(holders) = self.holders.get_mut(&executor) {
            holders.remove(holder);
            if holders.is_empty() {
                self.holders.remove(&executor);
            }
        }
        Some(executor)
    }

    fn wait(&mut self, request: &SlotRequest, ends_at: Duration) -> Result<(), LedgerRefused> {
        let SlotRequest { holder, priority, executors, .. } = request;
        let before = self.waiters.get(holder).map(|waiter| (waiter.turn.arrival, waiter.ends_at));
        let entries_before = self.waiters.get(holder).map_or(0, |waiter| waiter.executors.len());
        let waiting = self.waiters.len() + usize::from(before.is_none());
        let entries = self.entries - entries_before + executors.len();
        if waiting > Self::WAITERS_MAX || entries > Self::QUEUE_ENTRIES_MAX {
            return Err(LedgerRefused::QueueFull);
        }
        self.leave(holder);
        let arrival = before.map_or(self.arrival_last + 1, |(arrival, _)| arrival);
        self.arrival_last = self.arrival_last.max(arrival);
        // As with a lease, asking again never shortens it.
        let ends_at = before.map_or(ends_at, |(_, before)| before.max(ends_at));
        let turn = Turn { priority: *priority, arrival };
        for executor in executors {
            self.queues.entry(executor.clone()).or_default().insert(turn);
        }
        self.entries += executors.len();
        self.turns.insert(turn, holder.clone());
        self.waiter_ends.insert((ends_at, holder.clone()));
        self.waiters.insert(holder.clone(), Waiter { turn, executors: executors.clone(), ends_at });
        Ok(())
    }

    fn leave(&mut self, holder: &ExecutionKey) -> bool {
        let Some(Waiter { turn, executors, ends_at }) = self.waiters.remove(holder) else {
            return false;
        };
        self.waiter_ends.remove(&(ends_at, holder.clone()));
        self.turns.remove(&turn);
        self.entries -= executors.len();
        for executor in executors {
            if let Some(queue) = self.queues.get_mut(&executor) {
                queue.remove(&turn);
                if queue.is_empty() {
                    self.queues.remove(&executor);
                }
            }
        }
        true
    }

    /// Waiters ahead at the executor with the shortest queue.
    fn ahead(&self, holder: &ExecutionKey) -> u64 {
        let Some(waiter) = self.waiters.get(holder) else { return 0 };
        let queues = waiter.executors.iter().filter_map(|executor| self.queues.get(executor));
        let shortest = queues.min_by_key(|queue| queue.len());
        shortest.map_or(0, |queue| queue.range(..waiter.turn).count() as u64)
    }
}

fn check_name(executor: &str) -> Result<(), LedgerRefused> {
    let fits = (1..=SlotLedger::NAME_BYTES_MAX).contains(&executor.len());
    match fits && !executor.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(LedgerRefused::BadName),
    }
}
