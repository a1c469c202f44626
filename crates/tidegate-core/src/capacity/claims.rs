use super::{ExecutorId, ExecutorRuntimes, Fleet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Most tasks of one claim: with the longest code all of them together still fit into memory.
const CLAIM_MAX: usize = 100;
/// Interval of claims without a hint, before its jitter: half of it to one and a half.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Pause after a claim that the store did not answer; doubles with each.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Time after which a claim without an answer can't be made any more: the database has given it up by then.
const DOUBT: Duration = Duration::from_secs(60);

/// Executors with their free slots, the one with the most first.
type FreeSlots = BinaryHeap<(u32, Reverse<ExecutorId>)>;

/// Slots for which tasks are to be claimed: those of executors with the same runtimes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotGroup {
    /// Runtimes of the executors.
    pub serves: ExecutorRuntimes,
    /// The executor of each slot, in the order in which they are to be filled.
    pub slots: Vec<ExecutorId>,
}

/// Claim that a manager should make now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimPlan {
    /// Free slots. An executor is in one group.
    pub groups: Vec<SlotGroup>,
    /// Tasks whose retry time has come are to be queued first.
    pub due: bool,
    /// An earlier claim was not answered, and may have been made: its tasks are to be read too.
    pub doubt: bool,
}

/// Pace of claims of queued tasks that belong to nobody: for which slots, and when.
///
/// A manager claims when it knows of free slots and has no reason to believe that the queue has nothing for them:
/// after a hint, after a claim that filled its slots, and from time to time. One claim is under way at a time.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::admission::MessagePriority::Normal;
/// use tidegate_core::capacity::{Claims, Dispatcher, ExecutorId, ExecutorRuntimes, Placement};
///
/// let (now, executor) = (Duration::from_secs(9), ExecutorId(0));
/// let mut dispatcher = Dispatcher::new(Placement::Pull);
/// let mut claims = Claims::default();
/// assert!(claims.next(dispatcher.fleet(), now, 0).is_none(), "no slot is free");
/// dispatcher.executor_up(executor, 2, ExecutorRuntimes::All);
/// let plan = claims.next(dispatcher.fleet(), now, 0).unwrap();
/// assert_eq!(plan.groups[0].slots, [executor, executor], "one claim for all slots");
/// claims.answered(&[0], now);
/// assert!(claims.next(dispatcher.fleet(), now, 0).is_none(), "the queue is empty");
/// claims.hint();
/// assert!(claims.next(dispatcher.fleet(), now, 0).is_some());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Claims {
    /// Groups of the claim under way, each with its number of slots.
    under_way: Option<Vec<(ExecutorRuntimes, usize)>>,
    /// Runtimes of which the queue had no more tasks.
    empty: Vec<ExecutorRuntimes>,
    /// A hint came after the claim under way was sent: its answer says nothing about the queue now.
    hinted: bool,
    poll_at: Duration,
    paused_until: Option<Duration>,
    pause: Duration,
    doubt_since: Option<Duration>,
}

// === impl Claims ===

impl Claims {
    /// Takes in a hint that tasks may have been queued.
    pub fn hint(&mut self) {
        self.empty.clear();
        self.hinted = true;
    }

    /// Takes in the time from which on a task is to be retried.
    pub fn due_at(&mut self, at: Duration) {
        self.poll_at = self.poll_at.min(at);
    }

    /// The claim to make now, if there is one; it is under way until [`answered`](Self::answered) or
    /// [`failed`](Self::failed). `random` is a random number.
    pub fn next(&mut self, fleet: &Fleet, now: Duration, random: u64) -> Option<ClaimPlan> {
        if self.under_way.is_some() || self.paused_until.is_some_and(|until| now < until) {
            return None;
        }
        let due = now >= self.poll_at;
        let mut groups = free_slots(fleet, now);
        groups.retain(|group| due || !self.empty.contains(&group.serves));
        if groups.is_empty() {
            return None;
        }
        if due {
            self.empty.clear();
            self.poll_at = now.saturating_add(jittered(POLL_EVERY, random));
        }
        let sizes = groups.iter().map(|group| (group.serves.clone(), group.slots.len()));
        self.under_way = Some(sizes.collect());
        self.hinted = false;
        Some(ClaimPlan { groups, due, doubt: self.doubt_since.is_some() })
    }

    /// Takes in the number of tasks that each group of the claim has got, in the plan's order.
    pub fn answered(&mut self, claimed: &[usize], now: Duration) {
        let Some(groups) = self.under_way.take() else { return };
        (self.paused_until, self.pause) = (None, Duration::ZERO);
        if self.doubt_since.is_some_and(|since| now >= since.saturating_add(DOUBT)) {
            self.doubt_since = None;
        }
        if self.hinted {
            return;
        }
        for ((serves, slots), claimed) in groups.into_iter().zip(claimed) {
            if *claimed < slots && !self.empty.contains(&serves) {
                self.empty.push(serves);
            }
        }
    }

    /// Takes in that the store has not answered the claim: it may have been made.
    pub fn failed(&mut self, now: Duration) {
        if self.under_way.take().is_none() {
            return;
        }
        self.empty.clear();
        self.pause = (self.pause * 2).clamp(PAUSE_FIRST, PAUSE_MAX);
        self.paused_until = Some(now.saturating_add(self.pause));
        self.doubt_since = Some(now);
    }

    /// True while a claim is under way.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Time at which [`next`](Self::next) may have a claim although nothing was reported.
    #[must_use]
    pub fn next_wake(&self, fleet: &Fleet, now: Duration) -> Option<Duration> {
        if self.under_way.is_some() {
            return None;
        }
        if let Some(until) = self.paused_until.filter(|until| *until > now) {
            return Some(until);
        }
        let poll = (fleet.free(now) > 0).then_some(self.poll_at);
        fleet.next_open(now).into_iter().chain(poll).min()
    }
}

/// Free slots, those with few runtimes first: they can't take what is left by the others. Within a group the
/// executor with the most free slots is filled first.
fn free_slots(fleet: &Fleet, now: Duration) -> Vec<SlotGroup> {
    let mut found: Vec<(ExecutorRuntimes, FreeSlots)> = Vec::new();
    for (id, executor) in fleet.with_room() {
        let free = executor.free(now);
        if free == 0 {
            continue;
        }
        let slot = (free, Reverse(id));
        match found.iter_mut().find(|(serves, _)| *serves == executor.serves) {
            Some((_, slots)) => slots.push(slot),
            None => found.push((executor.serves.clone(), BinaryHeap::from([slot]))),
        }
    }
    found.sort_by_key(|(serves, _)| match serves {
        ExecutorRuntimes::Only(runtimes) => runtimes.len(),
        ExecutorRuntimes::All => usize::MAX,
    });
    let mut left = CLAIM_MAX;
    let fill = |(serves, mut executors): (_, FreeSlots)| {
        let mut slots = Vec::new();
        while left > 0
            && let Some((free, id)) = executors.pop()
        {
            left -= 1;
            slots.push(id.0);
            if free > 1 {
                executors.push((free - 1, id));
            }
        }
        SlotGroup { serves, slots }
    };
    let groups = found.into_iter().map(fill);
    groups.filter(|group| !group.slots.is_empty()).collect()
}

/// A time between half and one and a half of `every`.
fn jittered(every: Duration, random: u64) -> Duration {
    every / 2 + every.mul_f64((random >> 11) as f64 / (1_u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::super::{Dispatcher, Placement, RuntimeId};
    use super::*;

    const A: ExecutorId = ExecutorId(0);
    const B: ExecutorId = ExecutorId(1);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn fleet(slots: &[(ExecutorId, u32, ExecutorRuntimes)]) -> Dispatcher {
        let mut dispatcher = Dispatcher::new(Placement::Pull);
        for (id, slots, serves) in slots {
            dispatcher.executor_up(*id, *slots, serves.clone());
        }
        dispatcher
    }

    fn only(runtime: u16) -> ExecutorRuntimes {
        ExecutorRuntimes::Only(vec![RuntimeId(runtime)])
    }

    #[test]
    fn one_claim_has_all_free_slots_the_emptiest_executor_first() {
        let all = || ExecutorRuntimes::All;
        let dispatcher = fleet(&[(A, 1, all()), (B, 3, all())]);
        let plan = Claims::default().next(dispatcher.fleet(), at(5_000), 0).unwrap();
        assert_eq!(plan.groups, [SlotGroup { serves: all(), slots: vec![B, B, A, B] }]);
        let wide = fleet(&[(A, 1_000, all())]);
        let plan = Claims::default().next(wide.fleet(), at(5_000), 0).unwrap();
        assert_eq!(plan.groups[0].slots.len(), CLAIM_MAX);
    }

    #[test]
    fn few_runtimes_come_first_and_an_empty_queue_of_one_does_not_stop_the_other() {
        let dispatcher = fleet(&[(A, 1, ExecutorRuntimes::All), (B, 1, only(3))]);
        let mut claims = Claims::default();
        let plan = claims.next(dispatcher.fleet(), at(5_000), 0).unwrap();
        let slots: Vec<_> = plan.groups.iter().map(|group| group.slots.clone()).collect();
        assert_eq!(slots, [[B], [A]]);
        claims.answered(&[0, 1], at(5_000));
        let plan = claims.next(dispatcher.fleet(), at(5_001), 0).unwrap();
        assert_eq!(plan.groups.len(), 1, "what filled its slots may have more");
        assert_eq!(plan.groups[0].serves, ExecutorRuntimes::All);
    }

    #[test]
    fn a_hint_during_a_claim_makes_its_answer_worthless() {
        let dispatcher = fleet(&[(A, 1, ExecutorRuntimes::All)]);
        let mut claims = Claims::default();
        claims.next(dispatcher.fleet(), at(5_000), 0).unwrap();
        assert!(claims.next(dispatcher.fleet(), at(5_000), 0).is_none(), "one at a time");
        claims.hint();
        claims.answered(&[0], at(5_001));
        assert!(claims.next(dispatcher.fleet(), at(5_001), 0).is_some());
        claims.answered(&[0], at(5_002));
        assert!(claims.next(dispatcher.fleet(), at(5_002), 0).is_none());
    }

    #[test]
    fn a_lost_hint_only_delays() {
        let dispatcher = fleet(&[(A, 1, ExecutorRuntimes::All)]);
        for random in [0, u64::MAX / 2, u64::MAX] {
            let mut claims = Claims::default();
            assert!(claims.next(dispatcher.fleet(), at(5_000), random).unwrap().due);
            claims.answered(&[0], at(5_000));
            let wake = claims.next_wake(dispatcher.fleet(), at(5_000)).unwrap();
            assert!((at(5_500)..=at(6_500)).contains(&wake), "{wake:?}");
            assert!(claims.next(dispatcher.fleet(), wake - at(1), 0).is_none());
            assert!(claims.next(dispatcher.fleet(), wake, 0).unwrap().due);
        }
    }

    #[test]
    fn a_retry_is_claimed_when_its_time_has_come() {
        let dispatcher = fleet(&[(A, 1, ExecutorRuntimes::All)]);
        let mut claims = Claims::default();
        claims.next(dispatcher.fleet(), at(5_000), 0).unwrap();
        claims.answered(&[0], at(5_000));
        claims.due_at(at(5_200));
        assert_eq!(claims.next_wake(dispatcher.fleet(), at(5_000)), Some(at(5_200)));
        assert!(claims.next(dispatcher.fleet(), at(5_200), 0).unwrap().due);
    }

    #[test]
    fn a_claim_without_an_answer_is_looked_for_until_it_can_not_have_been_made() {
        let dispatcher = fleet(&[(A, 1, ExecutorRuntimes::All)]);
        let mut claims = Claims::default();
        assert!(!claims.next(dispatcher.fleet(), at(5_000), 0).unwrap().doubt);
        claims.failed(at(5_000));
        assert!(claims.next(dispatcher.fleet(), at(5_099), 0).is_none(), "a pause");
        assert!(claims.next(dispatcher.fleet(), at(5_100), 0).unwrap().doubt);
        claims.failed(at(5_100));
        assert_eq!(claims.next_wake(dispatcher.fleet(), at(5_100)), Some(at(5_300)), "longer");
        for (now, doubt) in [(at(5_300), true), (at(66_000), true), (at(67_000), false)] {
            claims.hint();
            let plan = claims.next(dispatcher.fleet(), now, 0).unwrap();
            assert_eq!(plan.doubt, doubt, "{now:?}");
            claims.answered(&[1], now);
        }
    }
}
