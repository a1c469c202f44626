//! Random sequences of what holders, executors and time do to a ledger, compared step by step with the plain one.

use super::asking::*;
use super::plain::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::admission::MessagePriority;
use tidegate_core::capacity::{Acquired, SlotLease, SlotLedger};

const EXECUTORS: [&str; 3] = ["red", "green", "blue"];
const HOLDERS: u8 = 6;

#[derive(Clone, Debug)]
enum Step {
    Declare {
        executor: usize,
        slots: u32,
    },
    Acquire {
        holder: u8,
        priority: u8,
        executors: Vec<usize>,
        ttl_ms: u64,
    },
    /// Of a lease that was once given: it may be over, and its holder may have another.
    Renew {
        lease: usize,
        ttl_ms: u64,
    },
    Release {
        lease: usize,
    },
    Withdraw {
        holder: u8,
    },
    Reconcile {
        executor: usize,
        running: Vec<u8>,
        back: u64,
    },
    Pass {
        ms: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let some_executors = prop::sample::subsequence(vec![0, 1, 2], 1..=3).prop_shuffle();
    let running = prop::collection::vec(0..HOLDERS, 0..3);
    let step = prop_oneof![
        2 => (0..3_usize, 0..3_u32)
            .prop_map(|(executor, slots)| Step::Declare { executor, slots }),
        8 => (0..HOLDERS, 0..4_u8, some_executors, 1..40_u64).prop_map(
            |(holder, priority, executors, ttl_ms)| {
                Step::Acquire { holder, priority, executors, ttl_ms }
            }
        ),
        3 => (0..20_usize, 1..40_u64).prop_map(|(lease, ttl_ms)| Step::Renew { lease, ttl_ms }),
        4 => (0..20_usize).prop_map(|lease| Step::Release { lease }),
        1 => (0..HOLDERS).prop_map(|holder| Step::Withdraw { holder }),
        1 => (0..3_usize, running, 0..4_u64).prop_map(
            |(executor, running, back)| Step::Reconcile { executor, running, back }
        ),
        2 => (1..30_u64).prop_map(|ms| Step::Pass { ms }),
    ];
    prop::collection::vec(step, 1..80)
}

/// Both ledgers side by side, and what was ever granted.
struct Pair {
    ledger: SlotLedger,
    plain: Plain,
    now_ms: u64,
    given: Vec<SlotLease>,
    held: BTreeMap<&'static str, u32>,
}

// === impl Pair ===

impl Pair {
    fn new() -> Self {
        Self {
            ledger: SlotLedger::new(0),
            plain: Plain::default(),
            now_ms: 0,
            given: Vec::new(),
            held: BTreeMap::new(),
        }
    }

    fn lease(&self, number: usize) -> Option<SlotLease> {
        // The newest first: those are likelier to be live.
        self.given.len().checked_sub(1 + number).map(|at| self.given[at].clone())
    }

    fn apply(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let now = ms(self.now_ms);
        self.plain.expire(self.now_ms);
        match step {
            Step::Declare { executor, slots } => {
                let executor = EXECUTORS[*executor];
                self.ledger.declare(executor, *slots, now).unwrap();
                self.plain.slots.insert(executor, *slots);
                self.plain.hand_out(executor);
            }
            Step::Acquire { holder, priority, executors, ttl_ms } => {
                let executors: Vec<_> = executors.iter().map(|at| EXECUTORS[*at]).collect();
                let priority = MessagePriority::ALL[usize::from(*priority)];
                let request = request(*holder, &executors, priority, *ttl_ms);
                let ours = self.ledger.acquire(&request, now).unwrap();
                let ends_ms = self.now_ms + ttl_ms;
                let plain = self.plain.acquire(&key(*holder), priority, &executors, ends_ms);
                prop_assert_eq!(&ours, &plain);
                if let Acquired::Granted(lease) = ours
                    && !self.given.contains(&lease)
                {
                    let known = self.given.iter().any(|given| given.fence == lease.fence);
                    prop_assert!(!known, "a fence is one lease's");
                    self.given.push(lease);
                }
            }
            Step::Renew { lease, ttl_ms } => {
                let Some(lease) = self.lease(*lease) else { return Ok(()) };
                let ends_ms = self.now_ms + ttl_ms;
                let held = self.plain.leases.iter_mut().find(|held| held.0 == lease);
                let live = held.is_some_and(|held| {
                    (held.1, held.2) = (held.1.max(ends_ms), true);
                    true
                });
                prop_assert_eq!(self.ledger.renew(&lease, ms(*ttl_ms), now), live);
            }
            Step::Release { lease } => {
                let Some(lease) = self.lease(*lease) else { return Ok(()) };
                let ended = self.plain.end(|held| held.0 == lease) == 1;
                prop_assert_eq!(self.ledger.release(&lease, now), ended);
            }
            Step::Withdraw { holder } => {
                let holder = key(*holder);
                let stood = self.plain.line.len();
                self.plain.line.retain(|waiter| waiter.holder != holder);
                let left = self.plain.line.len() < stood;
                let ended = self.plain.end(|held| held.0.holder == holder && !held.2) == 1;
                prop_assert_eq!(self.ledger.withdraw(&holder, now), left || ended);
            }
            Step::Reconcile { executor, running, back } => {
                let executor = EXECUTORS[*executor];
                let running: Vec<_> = running.iter().map(|holder| key(*holder)).collect();
                let asked_after = self.ledger.latest_fence().saturating_sub(*back);
                let ended = self.plain.end(|held| {
                    let own = &*held.0.executor == executor && held.0.fence <= asked_after;
                    own && !running.contains(&held.0.holder)
                });
                let ours = self.ledger.reconcile(executor, &running, asked_after, now);
                prop_assert_eq!(ours, ended);
            }
            Step::Pass { ms } => self.now_ms += ms,
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        let now = ms(self.now_ms);
        self.plain.expire(self.now_ms);
        // Nothing is expired for it first: whoever asks how many wait or are held must get the same answer as who
        // takes one. Which of the two is asked first is left to time.
        if self.now_ms.is_multiple_of(2) {
            prop_assert_eq!(self.ledger.waiting(now), self.plain.line.len());
        }
        for executor in EXECUTORS {
            let held = self.plain.leases.iter().filter(|held| &*held.0.executor == executor);
            let ours = self.ledger.held(executor, now);
            prop_assert_eq!(ours as usize, held.count());
            // More than it has are held only where it had more before.
            let slots = self.plain.slots.get(executor).copied().unwrap_or(0);
            let before = self.held.insert(executor, ours).unwrap_or(0);
            prop_assert!(ours <= slots.max(before));
            let wanted = self.plain.line.iter().any(|waiter| waiter.executors.contains(&executor));
            prop_assert!(!wanted || !self.plain.free(executor), "waits beside a free slot");
        }
        prop_assert_eq!(self.ledger.latest_fence(), self.plain.fences);
        prop_assert_eq!(self.ledger.waiting(now), self.plain.line.len());
        let holders: BTreeSet<_> = self.plain.leases.iter().map(|held| &held.0.holder).collect();
        prop_assert_eq!(holders.len(), self.plain.leases.len(), "two leases of one holder");
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    #[test]
    fn it_does_what_the_plain_one_does(steps in steps()) {
        let mut pair = Pair::new();
        for step in &steps {
            pair.apply(step)?;
            pair.check()?;
        }
        // Whoever crashed: after the longest ttl nothing is held and nobody waits.
        pair.now_ms += 40;
        pair.check()?;
        prop_assert_eq!(pair.ledger.waiting(ms(pair.now_ms)), 0);
        prop_assert!(EXECUTORS.iter().all(|name| pair.ledger.held(name, ms(pair.now_ms)) == 0));
        prop_assert_eq!(pair.ledger.next_expiry(), None);
    }
}
