//! The slots of an executor under random interleavings, with replies that are lost or come twice, callers that
//! crash, and an executor that starts again.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tidegate_core::capacity::{Cancelled, ExecuteRefused, ExecutorSlots, Granted, ReserveRefused};
use tidegate_core::task::{ExecutionKey, TaskId};

/// Few enough that they meet each other all the time.
const TASKS: u8 = 4;
const ATTEMPTS: u32 = 2;
const TTL_MAX_MS: u64 = 50;

/// Step of a caller. Callers know only the replies they received, and some replies are lost.
#[derive(Clone, Copy, Debug)]
enum Step {
    Reserve {
        key: u8,
        ttl_ms: u64,
        reply: Reply,
    },
    /// With the reservation that was told last, another's, or none.
    Execute {
        key: u8,
        body: u64,
        with: With,
        lease_ms: Option<u64>,
        reply: Reply,
    },
    /// The run of a key ends; told with its own fence or another.
    Finish {
        key: u8,
        own: bool,
    },
    Unreserve {
        key: u8,
        own: bool,
    },
    Renew {
        key: u8,
        fence: Option<bool>,
    },
    Cancel {
        key: u8,
        reply: Reply,
    },
    /// The executor's timer looks.
    Expire,
    Wait {
        ms: u64,
    },
    Restart,
}

/// Delivery of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    Arrives,
    /// The caller does not hear it, and asks again.
    LostAndRetried,
    /// The caller is gone.
    LostForGood,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    Nothing,
    Told,
    Foreign,
}

/// Expected state, apart from the slots under test.
struct World {
    slots: ExecutorSlots,
    max: u32,
    now_ms: u64,
    fence_highest: u64,
    /// The reservation that a caller heard of.
    told: BTreeMap<ExecutionKey, u64>,
    /// Reservations that were made in this life, with their ends: whoever made them may be gone.
    promised: BTreeMap<ExecutionKey, (u64, u64)>,
    /// Executions since the last restart: fence, and end of the lease.
    running: BTreeMap<ExecutionKey, Run>,
    /// Every start of this life. Nothing is forgotten within one test.
    started: BTreeMap<ExecutionKey, (u64, u64)>,
    cancelled: BTreeSet<ExecutionKey>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    fence: u64,
    lease: Option<(u64, u64)>,
    /// Its lease has run out and it was named.
    stopping: bool,
}

fn key(number: u8) -> ExecutionKey {
    let task = TaskId::new(&format!("t{}", number % TASKS)).unwrap();
    task.attempt(1 + u32::from(number / TASKS) % ATTEMPTS)
}

// === impl World ===

impl World {
    fn new(max: u32) -> Self {
        Self {
            slots: ExecutorSlots::new(max, 0),
            max,
            now_ms: 0,
            fence_highest: 0,
            told: BTreeMap::new(),
            promised: BTreeMap::new(),
            running: BTreeMap::new(),
            started: BTreeMap::new(),
            cancelled: BTreeSet::new(),
        }
    }

    fn now(&self) -> Duration {
        Duration::from_millis(self.now_ms)
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Reserve { key: number, ttl_ms, reply } => {
                self.reserve(&key(number), ttl_ms, reply)
            }
            Step::Execute { key: number, body, with, lease_ms, reply } => {
                self.execute(&key(number), body, with, lease_ms, reply);
            }
            Step::Finish { key: number, own } => self.finish(&key(number), own),
            Step::Unreserve { key: number, own } => self.unreserve(&key(number), own),
            Step::Renew { key: number, fence } => self.renew(&key(number), fence),
            Step::Cancel { key: number, reply } => {
                self.cancel(&key(number));
                if reply == Reply::LostAndRetried {
                    self.cancel(&key(number));
                }
            }
            Step::Expire => self.expire(),
            Step::Wait { ms } => {
                self.now_ms += ms;
                self.promised.retain(|_, (_, ends_ms)| *ends_ms > self.now_ms);
            }
            Step::Restart => self.restart(),
        }
        self.check();
    }

    fn reserve(&mut self, key: &ExecutionKey, ttl_ms: u64, reply: Reply) {
        let ttl = Duration::from_millis(ttl_ms);
        let first = self.slots.reserve(key, ttl, self.now());
        match first {
            Ok(held) => {
                match self.promised.get(key) {
                    Some((fence, _)) => assert_eq!(held.fence, *fence, "the same one again"),
                    None => {
                        self.rises(held.fence);
                        self.promised.insert(key.clone(), (held.fence, self.now_ms + ttl_ms));
                    }
                }
                let ends = self.promised[key].1;
                assert_eq!(held.expires_at, Duration::from_millis(ends), "asking prolongs nothing");
                if reply != Reply::LostForGood {
                    self.told.insert(key.clone(), held.fence);
                }
            }
            Err(ReserveRefused::Full) => self.is_full(),
            Err(ReserveRefused::Started) => assert!(self.started.contains_key(key)),
            Err(ReserveRefused::Cancelled) => assert!(self.cancelled.contains(key)),
        }
        if reply == Reply::LostAndRetried {
            assert_eq!(self.slots.reserve(key, ttl, self.now()), first, "the first answer again");
        }
    }

    fn execute(
        &mut self,
        key: &ExecutionKey,
        body: u64,
        with: With,
        lease_ms: Option<u64>,
        reply: Reply,
    ) {
        let reservation = match with {
            With::Nothing => None,
            With::Told => self.told.get(key).copied(),
            With::Foreign => Some(self.fence_highest + 1_000),
        };
        let lease = lease_ms.map(Duration::from_millis);
        let now = self.now();
        let first = self.slots.execute(key, body, reservation, lease, now);
        match first {
            Ok(Granted { fence, first: true }) => {
                assert!(!self.started.contains_key(key), "{key} was started twice");
                assert!(!self.cancelled.contains(key), "{key} was cancelled");
                match self.promised.remove(key) {
                    Some((promised, _)) => assert_eq!(fence, promised, "in its own slot"),
                    None => self.rises(fence),
                }
                assert!(reservation.is_none_or(|asked| asked == fence));
                let lease = lease_ms.map(|ttl_ms| (ttl_ms, self.now_ms + ttl_ms));
                self.running.insert(key.clone(), Run { fence, lease, stopping: false });
                self.started.insert(key.clone(), (fence, body));
            }
            Ok(Granted { fence, first: false }) => {
                assert_eq!(self.started.get(key), Some(&(fence, body)), "the first answer again");
            }
            Err(ExecuteRefused::Full) => {
                assert!(!self.promised.contains_key(key), "{key} has a slot of its own");
                self.is_full();
            }
            Err(ExecuteRefused::Gone) => {
                let asked = reservation.unwrap();
                assert_ne!(self.promised.get(key).map(|(fence, _)| *fence), Some(asked));
            }
            Err(ExecuteRefused::Conflict) => assert_ne!(self.started[key].1, body),
            Err(ExecuteRefused::Cancelled) => assert!(self.cancelled.contains(key)),
        }
        if reply == Reply::LostAndRetried {
            let again = self.slots.execute(key, body, reservation, lease, now);
            let expected = first.map(|granted| Granted { first: false, ..granted });
            assert_eq!(again, expected, "the first answer again");
        }
    }

    fn finish(&mut self, key: &ExecutionKey, own: bool) {
        let fence = self.running.get(key).map_or(self.fence_highest, |run| run.fence);
        let fence = if own { fence } else { fence + 1 };
        let ran = own && self.running.contains_key(key);
        let before = self.slots.clone();
        assert_eq!(self.slots.finish(key, fence), ran);
        if ran {
            self.running.remove(key);
        } else {
            assert_eq!(self.slots, before, "a foreign word changes nothing");
        }
        let once = self.slots.clone();
        assert!(!self.slots.finish(key, fence), "said twice");
        assert_eq!(self.slots, once);
    }

    fn unreserve(&mut self, key: &ExecutionKey, own: bool) {
        let promised = self.promised.get(key).map(|(fence, _)| *fence);
        let fence = promised.unwrap_or(self.fence_highest) + u64::from(!own);
        // What has run out may still be in the table, until somebody looks.
        self.slots.expire_reservations(self.now());
        let before = self.slots.clone();
        let given_back = self.slots.unreserve(key, fence);
        assert_eq!(given_back, own && promised.is_some());
        match given_back {
            true => drop(self.promised.remove(key)),
            false => assert_eq!(self.slots, before, "a foreign word changes nothing"),
        }
        assert!(!self.slots.unreserve(key, fence), "said twice");
    }

    fn renew(&mut self, key: &ExecutionKey, fence: Option<bool>) {
        let run = self.running.get_mut(key);
        let own = run.as_ref().map(|run| run.fence);
        let given = fence.map(|own_one| own.unwrap_or(7) + u64::from(!own_one));
        let before = self.slots.clone();
        let now = Duration::from_millis(self.now_ms);
        let renewed = self.slots.renew(key, given, now);
        // Whether it was named is the timer's affair: a lease ends by the clock.
        let leased = run.as_ref().is_some_and(|run| {
            !run.stopping && run.lease.is_none_or(|(_, ends_ms)| ends_ms > self.now_ms)
        });
        assert_eq!(renewed, leased && fence != Some(false));
        if !renewed {
            assert_eq!(self.slots, before, "a foreign or a late word changes nothing");
        } else if let Some(Run { lease: Some((ttl_ms, ends_ms)), .. }) = run {
            *ends_ms = (*ends_ms).max(self.now_ms + *ttl_ms);
        }
    }

    fn cancel(&mut self, key: &ExecutionKey) {
        match self.slots.cancel(key) {
            Cancelled::Running { fence } => assert_eq!(self.running[key].fence, fence),
            Cancelled::Ended => {
                assert!(self.started.contains_key(key) && !self.running.contains_key(key));
            }
            was @ (Cancelled::Reserved | Cancelled::BeforeArrival) => {
                assert!(!self.started.contains_key(key));
                // One that has expired may be held until the slots are looked at.
                assert!(self.promised.remove(key).is_none() || was == Cancelled::Reserved);
                self.cancelled.insert(key.clone());
            }
        }
    }

    fn expire(&mut self) {
        let named: BTreeSet<_> = self.slots.expire(self.now()).into_iter().collect();
        let mut expected = BTreeSet::new();
        for (key, run) in &mut self.running {
            if run.lease.is_some_and(|(_, ends_ms)| ends_ms <= self.now_ms) {
                (run.lease, run.stopping) = (None, true);
                expected.insert((key.clone(), run.fence));
            }
        }
        assert_eq!(named, expected, "those of which nobody asked, each once");
    }

    /// All that it knew is gone; its fences are not.
    fn restart(&mut self) {
        self.slots = ExecutorSlots::new(self.max, self.fence_highest);
        self.promised.clear();
        self.running.clear();
        self.started.clear();
        self.cancelled.clear();
        // Callers remember what the life before told them.
    }

    fn rises(&mut self, fence: u64) {
        assert!(fence > self.fence_highest, "{fence} after {}", self.fence_highest);
        self.fence_highest = fence;
    }

    /// Nobody is refused for want of a slot while there is one.
    fn is_full(&self) {
        assert_eq!(self.running.len() + self.promised.len(), self.max as usize);
    }

    fn check(&self) {
        let occupancy = self.slots.occupancy(self.now());
        assert!(occupancy.running + occupancy.reserved <= occupancy.max);
        assert_eq!(occupancy.running as usize, self.running.len());
        assert_eq!(occupancy.reserved as usize, self.promised.len());
        let fences: BTreeSet<u64> = self.slots.running().map(|(_, fence)| fence).collect();
        assert_eq!(fences.len(), self.running.len(), "no two runs have one fence");
        let ends = self.running.values().filter_map(|run| run.lease.map(|(_, ends_ms)| ends_ms));
        let ends = ends.chain(self.promised.values().map(|(_, ends_ms)| *ends_ms));
        let next = self.slots.next_expiry().map(|at| at.as_millis() as u64);
        assert!(ends.min().is_none_or(|earliest| next.is_some_and(|next| next <= earliest)));
    }

    /// Every caller is gone, and everything that runs is stopped when the executor says so or ends.
    fn everybody_leaves(&mut self) {
        self.step(Step::Wait { ms: TTL_MAX_MS });
        self.step(Step::Expire);
        assert_eq!(self.slots.occupancy(self.now()).reserved, 0, "within the ttl");
        for (key, run) in self.running.clone() {
            assert!(self.slots.finish(&key, run.fence));
            self.running.remove(&key);
        }
        assert_eq!(self.slots.occupancy(self.now()).free(), self.max);
        assert_eq!(self.slots.next_expiry(), None, "nothing is left behind");
    }
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        3 => Just(Reply::Arrives),
        1 => Just(Reply::LostAndRetried),
        1 => Just(Reply::LostForGood),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let number = 0..TASKS * ATTEMPTS as u8;
    let ttl = 1..=TTL_MAX_MS;
    let with = prop_oneof![
        2 => Just(With::Nothing),
        3 => Just(With::Told),
        1 => Just(With::Foreign),
    ];
    let reserve = (number.clone(), ttl.clone(), reply())
        .prop_map(|(key, ttl_ms, reply)| Step::Reserve { key, ttl_ms, reply });
    let lease = prop::option::of(ttl);
    // Mostly the same body: another is the exception.
    let body = prop_oneof![4 => Just(1_u64), 1 => Just(2)];
    let execute = (number.clone(), body, with, lease, reply()).prop_map(
        |(key, body, with, lease_ms, reply)| Step::Execute { key, body, with, lease_ms, reply },
    );
    let finish = (number.clone(), any::<bool>()).prop_map(|(key, own)| Step::Finish { key, own });
    let unreserve =
        (number.clone(), any::<bool>()).prop_map(|(key, own)| Step::Unreserve { key, own });
    let renew =
        (number.clone(), any::<Option<bool>>()).prop_map(|(key, fence)| Step::Renew { key, fence });
    let cancel = (number, reply()).prop_map(|(key, reply)| Step::Cancel { key, reply });
    prop_oneof![
        6 => reserve,
        8 => execute,
        6 => finish,
        2 => unreserve,
        3 => renew,
        1 => cancel,
        3 => Just(Step::Expire),
        4 => (1..40_u64).prop_map(|ms| Step::Wait { ms }),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_lost_or_said_twice_no_slot_is_given_twice_or_kept_for_ever(
        max in 1..4_u32,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut world = World::new(max);
        for step in steps {
            world.step(step);
        }
        world.everybody_leaves();
    }

    /// With any cancellations ahead of arrival, the last ended keys are known, and are not started again.
    #[test]
    fn what_is_forgotten_is_the_oldest_and_cancelling_makes_nothing_forgotten(
        past_max in 1..6_usize,
        ended in 1..12_u64,
        cancelled in 0..40_u64,
    ) {
        let mut slots = ExecutorSlots::new(1, 0).with_past_max(past_max);
        let name = |kind: &str, nth: u64| TaskId::new(&format!("{kind}{nth}")).unwrap().attempt(1);
        let now = Duration::ZERO;
        for nth in 0..ended {
            let granted = slots.execute(&name("e", nth), 1, None, None, now).unwrap();
            assert!(slots.finish(&name("e", nth), granted.fence));
        }
        for nth in 0..cancelled {
            assert_eq!(slots.cancel(&name("c", nth)), Cancelled::BeforeArrival);
        }
        for nth in ended.saturating_sub(past_max as u64)..ended {
            assert!(!slots.execute(&name("e", nth), 1, None, None, now).unwrap().first);
        }
        for nth in cancelled.saturating_sub(past_max as u64)..cancelled {
            let refused = slots.execute(&name("c", nth), 1, None, None, now);
            assert_eq!(refused, Err(ExecuteRefused::Cancelled));
        }
    }
}
