use super::refused::LedgerRefused;
use super::slot_request::{Acquired, SlotLease, SlotRequest};
use crate::admission::MessagePriority;
use crate::task::ExecutionKey;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The slots of executors, who holds them, and who waits for them in which order.
///
/// Every method is one step, at the time `now` of a clock that the caller keeps. Slots are never left lying for
/// somebody to come by: one that comes free is the first waiter's in the same step, under a fence of its own,
/// until that waiter's place in the line would have ended. So a free slot is one that nobody waits for, and
/// whoever arrives can take it without overtaking anyone.
///
/// - Never more leases of an executor than it has slots, but for those that were held when it said to have fewer.
/// - A lease that nobody renews ends with its ttl, and so does a place in the line.
/// - A holder has at most one lease; fences only rise; a word with a foreign fence changes nothing.
/// - All is bounded: executors, their slots, who waits, and for how many executors.
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
    executors: BTreeMap<Box<str>, Declared>,
    leases: BTreeMap<ExecutionKey, Held>,
    lease_ends: BTreeSet<(Duration, ExecutionKey)>,
    held: BTreeMap<Box<str>, BTreeSet<ExecutionKey>>,
    places: BTreeMap<ExecutionKey, Place>,
    place_ends: BTreeSet<(Duration, ExecutionKey)>,
    /// The waiters of each executor. Who would take any of several stands in the line of each.
    lines: BTreeMap<Box<str>, BTreeSet<Turn>>,
    turns: BTreeMap<Turn, ExecutionKey>,
    /// How many places there are in all lines together.
    standing: usize,
    arrival_last: u64,
    fence_last: u64,
    changes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Declared {
    slots: u32,
    until: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Held {
    executor: Box<str>,
    fence: u64,
    ends_at: Duration,
    /// Whether the holder was told of it, or at least an answer was sent.
    told: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    turn: Turn,
    executors: Vec<Box<str>>,
    ends_at: Duration,
}

/// The order of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Turn {
    priority: MessagePriority,
    arrival: u64,
}

// === impl SlotLedger ===

impl SlotLedger {
    /// Executors that are known at the same time.
    pub const EXECUTORS_MAX: usize = 10_000;
    /// Slots of one executor.
    pub const SLOTS_MAX: u32 = 10_000;
    /// Bytes of an executor's name.
    pub const NAME_BYTES_MAX: usize = 256;
    /// Executors of one request.
    pub const REQUEST_EXECUTORS_MAX: usize = 1_024;
    /// Holders that wait at the same time.
    pub const WAITERS_MAX: usize = 100_000;
    /// Places in the lines of all executors together: who would take any of ten stands in ten lines.
    pub const STANDING_MAX: usize = 500_000;
    /// How long an executor is known that is not declared again.
    pub const DECLARED_FOR: Duration = Duration::from_secs(3_600);
    /// The longest ttl: whoever forgets a slot, it returns within a day.
    pub const TTL_MAX: Duration = Duration::from_secs(86_400);

    /// No executor is known, nobody waits. The first fence is one above `fence_floor`, which has to be higher than
    /// every fence that an earlier life of this ledger has given.
    #[must_use]
    pub fn new(fence_floor: u64) -> Self {
        Self {
            executors: BTreeMap::new(),
            leases: BTreeMap::new(),
            lease_ends: BTreeSet::new(),
            held: BTreeMap::new(),
            places: BTreeMap::new(),
            place_ends: BTreeSet::new(),
            lines: BTreeMap::new(),
            turns: BTreeMap::new(),
            standing: 0,
            arrival_last: 0,
            fence_last: fence_floor,
            changes: 0,
        }
    }

    /// A ttl as it counts: whole milliseconds, at least one, at most [`TTL_MAX`](Self::TTL_MAX).
    #[must_use]
    pub fn counted(ttl: Duration) -> Duration {
        let ttl_ms = ttl.min(Self::TTL_MAX).as_nanos().div_ceil(1_000_000).max(1);
        Duration::from_millis(u64::try_from(ttl_ms).unwrap_or(u64::MAX))
    }

    /// Whether a request may be made at all.
    ///
    /// # Errors
    ///
    /// When it names no executor, too many, or one whose name can't be.
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

    /// Whether an executor may be declared so at all.
    ///
    /// # Errors
    ///
    /// When its name can't be, or it has too many slots.
    pub fn check_declaration(executor: &str, slots: u32) -> Result<(), LedgerRefused> {
        check_name(executor)?;
        match slots <= Self::SLOTS_MAX {
            true => Ok(()),
            false => Err(LedgerRefused::TooManySlots { given: slots }),
        }
    }

    /// Says how many slots an executor has, for [`DECLARED_FOR`](Self::DECLARED_FOR) from now. Fewer than are held
    /// takes none away: they are not given again. None at all forgets it.
    ///
    /// # Errors
    ///
    /// When it can't have that name or so many slots, or too many executors are known.
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
        self.executors.insert(executor.into(), Declared { slots, until });
        if slots > before {
            self.freed(executor, now);
        }
        Ok(())
    }

    /// Takes a slot, or a place in the line for one.
    ///
    /// A holder that asks again keeps its place, also when it asks for other executors or by another priority;
    /// there it stands behind those who came before it.
    ///
    /// # Errors
    ///
    /// When the request can't be made, or too many wait already. Nothing changed.
    pub fn acquire(
        &mut self,
        request: &SlotRequest,
        now: Duration,
    ) -> Result<Acquired, LedgerRefused> {
        Self::check(request)?;
        self.expire(now);
        let SlotRequest { holder, executors, .. } = request;
        let ends_at = now.saturating_add(Self::counted(request.ttl));
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

    /// Keeps a lease until so long from now; it never becomes shorter by that. False when it is not held any more.
    pub fn renew(&mut self, lease: &SlotLease, ttl: Duration, now: Duration) -> bool {
        self.expire(now);
        let ends_at = now.saturating_add(Self::counted(ttl));
        self.extend(&lease.holder, Some(lease.fence), ends_at).is_some()
    }

    /// Gives a slot back. False when it was not held any more.
    pub fn release(&mut self, lease: &SlotLease, now: Duration) -> bool {
        self.expire(now);
        match self.leases.get(&lease.holder) {
            Some(held) if held.fence == lease.fence => self.end(&lease.holder, now),
            _ => false,
        }
    }

    /// Leaves the line, and gives back a slot that came meanwhile and of which the holder was not told. False when
    /// there was neither.
    pub fn withdraw(&mut self, holder: &ExecutionKey, now: Duration) -> bool {
        self.expire(now);
        match self.leases.get(holder) {
            Some(held) if !held.told => self.end(holder, now),
            _ => self.leave(holder),
        }
    }

    /// Ends the leases of an executor that are as old as the fence `asked_after` and whose holders it does not
    /// run. Returns how many.
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
            self.leases.get(holder).is_some_and(|held| held.fence <= asked_after)
        };
        let holders = self.held.get(executor).into_iter().flatten();
        let gone: Vec<_> =
            holders.filter(|holder| !running.contains(holder)).filter(old).cloned().collect();
        for holder in &gone {
            self.remove_lease(holder);
        }
        if !gone.is_empty() {
            self.freed(executor, now);
        }
        gone.len() as u64
    }

    /// The highest fence given so far.
    #[must_use]
    pub fn latest_fence(&self) -> u64 {
        self.fence_last
    }

    /// How many slots of an executor are held, also by those who waited for one that has come free.
    #[must_use]
    pub fn held(&mut self, executor: &str, now: Duration) -> u32 {
        self.expire(now);
        let held = self.held.get(executor).map_or(0, BTreeSet::len);
        u32::try_from(held).unwrap_or(u32::MAX)
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&mut self, now: Duration) -> usize {
        self.expire(now);
        self.places.len()
    }

    /// Rises whenever a slot came free or was given to somebody who waited.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// When the next lease ends, or the next place in the line.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Duration> {
        let first = |ends: &BTreeSet<(Duration, ExecutionKey)>| ends.first().map(|first| first.0);
        first(&self.lease_ends).into_iter().chain(first(&self.place_ends)).min()
    }

    /// Ends what has run out, and gives the slots that come free by it to those who wait. All other methods do
    /// that too, first of all.
    pub fn expire(&mut self, now: Duration) {
        // Places first: a slot is nobody's who has stopped asking for it.
        while let Some((_, holder)) = self.place_ends.first().filter(|first| first.0 <= now) {
            let holder = holder.clone();
            self.leave(&holder);
        }
        let mut freed = BTreeSet::new();
        while let Some((_, holder)) = self.lease_ends.first().filter(|first| first.0 <= now) {
            let holder = holder.clone();
            freed.extend(self.remove_lease(&holder));
        }
        for executor in freed {
            self.freed(&executor, now);
        }
    }

    fn slots(&self, executor: &str, now: Duration) -> u32 {
        let declared = self.executors.get(executor).filter(|declared| declared.until > now);
        declared.map_or(0, |declared| declared.slots)
    }

    fn has_free(&self, executor: &str, now: Duration) -> bool {
        let held = self.held.get(executor).map_or(0, BTreeSet::len);
        held < self.slots(executor, now) as usize
    }

    /// Slots of an executor came free: they are those of the first who wait.
    fn freed(&mut self, executor: &str, now: Duration) {
        self.changes += 1;
        while self.has_free(executor, now) {
            let first = self.lines.get(executor).and_then(BTreeSet::first);
            let Some(holder) = first.and_then(|turn| self.turns.get(turn)).cloned() else { return };
            let Some(ends_at) = self.places.get(&holder).map(|place| place.ends_at) else { return };
            self.leave(&holder);
            self.grant(&holder, executor, ends_at, false);
        }
    }

    fn grant(
        &mut self,
        holder: &ExecutionKey,
        executor: &str,
        ends_at: Duration,
        told: bool,
    ) -> SlotLease {
        self.fence_last += 1;
        let fence = self.fence_last;
        self.lease_ends.insert((ends_at, holder.clone()));
        self.held.entry(executor.into()).or_default().insert(holder.clone());
        self.leases
            .insert(holder.clone(), Held { executor: executor.into(), fence, ends_at, told });
        SlotLease { holder: holder.clone(), executor: executor.into(), fence }
    }

    /// Prolongs a holder's lease, if it has one and, where a fence is given, that one.
    fn extend(
        &mut self,
        holder: &ExecutionKey,
        fence: Option<u64>,
        ends_at: Duration,
    ) -> Option<SlotLease> {
        let held = self.leases.get_mut(holder)?;
        if fence.is_some_and(|fence| fence != held.fence) {
            return None;
        }
        held.told = true;
        if ends_at > held.ends_at {
            self.lease_ends.remove(&(held.ends_at, holder.clone()));
            self.lease_ends.insert((ends_at, holder.clone()));
            held.ends_at = ends_at;
        }
        let (executor, fence) = (held.executor.clone(), held.fence);
        Some(SlotLease { holder: holder.clone(), executor, fence })
    }

    fn end(&mut self, holder: &ExecutionKey, now: Duration) -> bool {
        let Some(executor) = self.remove_lease(holder) else { return false };
        self.freed(&executor, now);
        true
    }

    fn remove_lease(&mut self, holder: &ExecutionKey) -> Option<Box<str>> {
        let Held { executor, ends_at, .. } = self.leases.remove(holder)?;
        self.lease_ends.remove(&(ends_at, holder.clone()));
        if let Some(holders) = self.held.get_mut(&executor) {
            holders.remove(holder);
            if holders.is_empty() {
                self.held.remove(&executor);
            }
        }
        Some(executor)
    }

    fn wait(&mut self, request: &SlotRequest, ends_at: Duration) -> Result<(), LedgerRefused> {
        let SlotRequest { holder, priority, executors, .. } = request;
        let before = self.places.get(holder).map(|place| (place.turn.arrival, place.ends_at));
        let stood = self.places.get(holder).map_or(0, |place| place.executors.len());
        let waiters = self.places.len() + usize::from(before.is_none());
        let standing = self.standing - stood + executors.len();
        if waiters > Self::WAITERS_MAX || standing > Self::STANDING_MAX {
            return Err(LedgerRefused::LineFull);
        }
        self.leave(holder);
        let arrival = before.map_or(self.arrival_last + 1, |(arrival, _)| arrival);
        self.arrival_last = self.arrival_last.max(arrival);
        // As with a lease: asking again never makes it shorter.
        let ends_at = before.map_or(ends_at, |(_, before)| before.max(ends_at));
        let turn = Turn { priority: *priority, arrival };
        for executor in executors {
            self.lines.entry(executor.clone()).or_default().insert(turn);
        }
        self.standing += executors.len();
        self.turns.insert(turn, holder.clone());
        self.place_ends.insert((ends_at, holder.clone()));
        self.places.insert(holder.clone(), Place { turn, executors: executors.clone(), ends_at });
        Ok(())
    }

    fn leave(&mut self, holder: &ExecutionKey) -> bool {
        let Some(Place { turn, executors, ends_at }) = self.places.remove(holder) else {
            return false;
        };
        self.place_ends.remove(&(ends_at, holder.clone()));
        self.turns.remove(&turn);
        self.standing -= executors.len();
        for executor in executors {
            if let Some(line) = self.lines.get_mut(&executor) {
                line.remove(&turn);
                if line.is_empty() {
                    self.lines.remove(&executor);
                }
            }
        }
        true
    }

    /// Of several lines only the shortest is counted through: a line has no other way to tell.
    fn ahead(&self, holder: &ExecutionKey) -> u64 {
        let Some(place) = self.places.get(holder) else { return 0 };
        let lines = place.executors.iter().filter_map(|executor| self.lines.get(executor));
        let shortest = lines.min_by_key(|line| line.len());
        shortest.map_or(0, |line| line.range(..place.turn).count() as u64)
    }
}

fn check_name(executor: &str) -> Result<(), LedgerRefused> {
    let fits = (1..=SlotLedger::NAME_BYTES_MAX).contains(&executor.len());
    match fits && !executor.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(LedgerRefused::BadName),
    }
}
