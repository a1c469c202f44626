//! Random sequences of what holders, executors and time do to a ledger of slots, compared step by step with a
//! plain one that thinks of nothing but the rules; and each way in which such a ledger is known to fail, by its
//! name.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tidegate_core::admission::MessagePriority::{self, Critical, High, Low, Normal};
use tidegate_core::capacity::{Acquired, LedgerRefused, SlotLease, SlotLedger, SlotRequest};
use tidegate_core::task::ExecutionKey;

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

/// The rules with no thought for speed: lists that are searched from the start.
#[derive(Default)]
struct Plain {
    slots: BTreeMap<&'static str, u32>,
    leases: Vec<(SlotLease, u64, bool)>,
    line: Vec<Waiter>,
    arrivals: u64,
    fences: u64,
}

struct Waiter {
    priority: MessagePriority,
    arrival: u64,
    holder: ExecutionKey,
    executors: Vec<&'static str>,
    ends_ms: u64,
}

// === impl Plain ===

impl Plain {
    fn free(&self, executor: &str) -> bool {
        let held = self.leases.iter().filter(|held| &*held.0.executor == executor).count();
        held < self.slots.get(executor).copied().unwrap_or(0) as usize
    }

    fn grant(&mut self, holder: &ExecutionKey, executor: &str, ends_ms: u64, told: bool) {
        self.fences += 1;
        let lease =
            SlotLease { holder: holder.clone(), executor: executor.into(), fence: self.fences };
        self.leases.push((lease, ends_ms, told));
    }

    /// Each free slot is that of the first in the line who wants it.
    fn hand_out(&mut self, executor: &str) {
        while self.free(executor) {
            let wants = |waiter: &Waiter| waiter.executors.contains(&executor);
            let Some(at) = self.line.iter().position(wants) else { return };
            let Waiter { holder, ends_ms, .. } = self.line.remove(at);
            self.grant(&holder, executor, ends_ms, false);
        }
    }

    fn expire(&mut self, now_ms: u64) {
        self.line.retain(|waiter| waiter.ends_ms > now_ms);
        let over = self.leases.iter().filter(|held| held.1 <= now_ms);
        let freed: BTreeSet<_> = over.map(|held| held.0.executor.clone()).collect();
        self.leases.retain(|held| held.1 > now_ms);
        for executor in freed {
            self.hand_out(&executor);
        }
    }

    fn acquire(
        &mut self,
        holder: &ExecutionKey,
        priority: MessagePriority,
        executors: &[&'static str],
        ends_ms: u64,
    ) -> Acquired {
        if let Some(held) = self.leases.iter_mut().find(|held| held.0.holder == *holder) {
            held.1 = held.1.max(ends_ms);
            held.2 = true;
            return Acquired::Granted(held.0.clone());
        }
        let at = self.line.iter().position(|waiter| waiter.holder == *holder);
        let before = at.map(|at| self.line.remove(at));
        if let Some(executor) = executors.iter().find(|executor| self.free(executor)) {
            self.grant(holder, executor, ends_ms, true);
            return Acquired::Granted(self.leases.last().unwrap().0.clone());
        }
        let arrival = before.as_ref().map_or_else(
            || {
                self.arrivals += 1;
                self.arrivals
            },
            |before| before.arrival,
        );
        let ends_ms = before.map_or(ends_ms, |before| before.ends_ms.max(ends_ms));
        let executors = executors.to_vec();
        self.line.push(Waiter { priority, arrival, holder: holder.clone(), executors, ends_ms });
        self.line.sort_by_key(|waiter| (waiter.priority, waiter.arrival));
        Acquired::Waiting { ahead: self.ahead(holder) }
    }

    fn ahead(&self, holder: &ExecutionKey) -> u64 {
        let own = self.line.iter().position(|waiter| waiter.holder == *holder).unwrap();
        let wants =
            |executor: &'static str| move |waiter: &&Waiter| waiter.executors.contains(&executor);
        let lengths = self.line[own].executors.iter();
        let shortest = lengths.min_by_key(|name| self.line.iter().filter(wants(name)).count());
        self.line[..own].iter().filter(wants(shortest.unwrap())).count() as u64
    }

    fn end(&mut self, which: impl Fn(&(SlotLease, u64, bool)) -> bool) -> u64 {
        let over: Vec<_> = self.leases.extract_if(.., |held| which(held)).collect();
        for executor in over.iter().map(|held| &held.0.executor).collect::<BTreeSet<_>>() {
            self.hand_out(executor);
        }
        over.len() as u64
    }
}

fn key(holder: u8) -> ExecutionKey {
    // Two attempts at each task: they are different holders.
    format!("task-{}@{}", holder / 2, holder % 2 + 1).parse().unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn request(holder: u8, executors: &[&str], priority: MessagePriority, ttl_ms: u64) -> SlotRequest {
    let executors = executors.iter().map(|name| Box::from(*name)).collect();
    SlotRequest { holder: key(holder), priority, executors, ttl: ms(ttl_ms) }
}

fn granted(acquired: Result<Acquired, LedgerRefused>) -> SlotLease {
    match acquired.unwrap() {
        Acquired::Granted(lease) => lease,
        Acquired::Waiting { ahead } => panic!("it waits behind {ahead}"),
    }
}

fn waits_behind(acquired: Result<Acquired, LedgerRefused>) -> u64 {
    match acquired.unwrap() {
        Acquired::Waiting { ahead } => ahead,
        Acquired::Granted(lease) => panic!("it was granted {lease:?}"),
    }
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
        // Nothing is expired for it first: whoever asks how many are held must get the same answer as who takes one.
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
        prop_assert_eq!(self.ledger.waiting(), self.plain.line.len());
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
        prop_assert_eq!(pair.ledger.waiting(), 0);
        prop_assert!(EXECUTORS.iter().all(|name| pair.ledger.held(name, ms(pair.now_ms)) == 0));
        prop_assert_eq!(pair.ledger.next_expiry(), None);
    }
}

fn one_slot() -> SlotLedger {
    let mut ledger = SlotLedger::new(0);
    ledger.declare("red", 1, ms(0)).unwrap();
    ledger
}

#[test]
fn a_decr_leak_after_a_crash_comes_back_with_the_ttl() {
    let mut ledger = one_slot();
    granted(ledger.acquire(&request(0, &["red"], Normal, 30), ms(0)));
    assert_eq!(waits_behind(ledger.acquire(&request(2, &["red"], Normal, 100), ms(29))), 0);
    let next = granted(ledger.acquire(&request(2, &["red"], Normal, 100), ms(30)));
    assert_eq!((&*next.executor, ledger.held("red", ms(30))), ("red", 1));
}

#[test]
fn a_refusal_is_never_false() {
    let mut ledger = one_slot();
    // With DECR, one who finds it full makes it look full to the next, even after a release between the two.
    let first = granted(ledger.acquire(&request(0, &["red"], Normal, 90), ms(0)));
    waits_behind(ledger.acquire(&request(2, &["red"], Normal, 90), ms(0)));
    assert!(ledger.withdraw(&key(2), ms(0)));
    assert!(ledger.release(&first, ms(0)));
    granted(ledger.acquire(&request(4, &["red"], Normal, 90), ms(0)));
}

#[test]
fn a_doubled_release_gives_no_second_slot() {
    let mut ledger = one_slot();
    let first = granted(ledger.acquire(&request(0, &["red"], Normal, 90), ms(0)));
    assert!(ledger.release(&first, ms(0)));
    granted(ledger.acquire(&request(2, &["red"], Normal, 90), ms(0)));
    assert!(!ledger.release(&first, ms(0)));
    waits_behind(ledger.acquire(&request(4, &["red"], Normal, 90), ms(0)));
    assert_eq!(ledger.held("red", ms(0)), 1);
}

#[test]
fn a_renewal_never_shortens() {
    let mut ledger = one_slot();
    let lease = granted(ledger.acquire(&request(0, &["red"], Normal, 100), ms(0)));
    assert!(ledger.renew(&lease, ms(10), ms(0)));
    granted(ledger.acquire(&request(0, &["red"], Normal, 10), ms(0)));
    assert!(ledger.renew(&lease, ms(1), ms(99)), "it lasts as long as it was first given");
    assert!(!ledger.renew(&lease, ms(1), ms(100)));
}

#[test]
fn another_attempt_is_another_holder() {
    let mut ledger = one_slot();
    let zombie = granted(ledger.acquire(&request(0, &["red"], Normal, 30), ms(0)));
    let successor = granted(ledger.acquire(&request(1, &["red"], Normal, 30), ms(30)));
    assert_eq!(zombie.holder.task, successor.holder.task);
    assert!(successor.fence > zombie.fence);
    assert!(!ledger.renew(&zombie, ms(90), ms(31)) && !ledger.release(&zombie, ms(31)));
    assert!(ledger.renew(&successor, ms(90), ms(31)));
}

#[test]
fn a_lost_reply_costs_nothing() {
    let mut ledger = one_slot();
    let unheard = granted(ledger.acquire(&request(0, &["red"], Normal, 30), ms(0)));
    ledger.declare("green", 1, ms(1)).unwrap();
    let again = granted(ledger.acquire(&request(0, &["green", "red"], Low, 30), ms(1)));
    assert_eq!(unheard, again, "also when it asks for something else the second time");
    assert_eq!(ledger.held("green", ms(1)), 0);
}

#[test]
fn an_executor_is_not_lost_for_good_with_its_holder() {
    let mut ledger = one_slot();
    for round in 0..100 {
        // Nobody ever releases, renews or recovers anything.
        let holder = request(u8::try_from(round % 6).unwrap(), &["red"], Normal, 5);
        granted(ledger.acquire(&holder, ms(round * 5)));
    }
}

#[test]
fn priority_first_then_arrival() {
    let mut ledger = one_slot();
    let mut last = granted(ledger.acquire(&request(0, &["red"], Normal, 900), ms(0)));
    for (holder, priority) in [(1, Low), (2, Normal), (3, Normal), (4, High), (5, Critical)] {
        waits_behind(ledger.acquire(&request(holder, &["red"], priority, 900), ms(0)));
    }
    for (holder, priority) in [(5, Critical), (4, High), (2, Normal), (3, Normal), (1, Low)] {
        assert!(ledger.release(&last, ms(1)));
        last = granted(ledger.acquire(&request(holder, &["red"], priority, 900), ms(1)));
    }
}

#[test]
fn a_slot_that_comes_free_by_time_is_counted_as_the_waiters() {
    let mut ledger = one_slot();
    granted(ledger.acquire(&request(0, &["red"], Normal, 30), ms(0)));
    waits_behind(ledger.acquire(&request(2, &["red"], Normal, 100), ms(0)));
    assert_eq!(ledger.held("red", ms(30)), 1);
    waits_behind(ledger.acquire(&request(4, &["red"], Normal, 100), ms(30)));
    assert_eq!(ledger.held("red", ms(100)), 1, "and then of who waited behind it");
    assert_eq!(ledger.held("red", ms(130)), 0);
}

#[test]
fn a_slot_that_came_in_absence_waits_as_long_as_its_place_would() {
    let mut ledger = one_slot();
    let first = granted(ledger.acquire(&request(0, &["red"], Normal, 900), ms(0)));
    waits_behind(ledger.acquire(&request(2, &["red"], Normal, 50), ms(0)));
    waits_behind(ledger.acquire(&request(4, &["red"], Normal, 900), ms(0)));
    assert!(ledger.release(&first, ms(40)));
    assert_eq!(ledger.held("red", ms(49)), 1, "it is the first waiter's, who has not come for it");
    waits_behind(ledger.acquire(&request(4, &["red"], Normal, 900), ms(49)));
    granted(ledger.acquire(&request(4, &["red"], Normal, 900), ms(50)));
}

#[test]
fn whoever_withdraws_gives_back_what_it_was_not_told_of() {
    let mut ledger = one_slot();
    let first = granted(ledger.acquire(&request(0, &["red"], Normal, 900), ms(0)));
    waits_behind(ledger.acquire(&request(2, &["red"], Normal, 900), ms(0)));
    assert!(ledger.release(&first, ms(1)));
    assert!(ledger.withdraw(&key(2), ms(1)));
    assert!(!ledger.withdraw(&key(2), ms(1)));
    let told = granted(ledger.acquire(&request(4, &["red"], Normal, 900), ms(1)));
    assert!(!ledger.withdraw(&key(4), ms(1)), "what it was told of it has to release");
    assert!(ledger.release(&told, ms(1)));
}

#[test]
fn an_executor_that_nobody_declares_is_forgotten() {
    let mut ledger = one_slot();
    let later = SlotLedger::DECLARED_FOR;
    waits_behind(ledger.acquire(&request(0, &["red"], Normal, 900), later));
    ledger.declare("red", 1, later).unwrap();
    granted(ledger.acquire(&request(0, &["red"], Normal, 900), later));
}

#[test]
fn what_can_t_be_is_refused_and_changes_nothing() {
    let mut ledger = one_slot();
    let before = ledger.clone();
    let wide: Vec<String> =
        (0..=SlotLedger::REQUEST_EXECUTORS_MAX).map(|n| n.to_string()).collect();
    let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
    let long = "x".repeat(SlotLedger::NAME_BYTES_MAX + 1);
    for (executors, refused) in [
        (vec![], LedgerRefused::NoExecutor),
        (wide, LedgerRefused::RequestTooWide { given: SlotLedger::REQUEST_EXECUTORS_MAX + 1 }),
        (vec![""], LedgerRefused::BadName),
        (vec!["a\0b"], LedgerRefused::BadName),
        (vec![&long], LedgerRefused::BadName),
    ] {
        assert_eq!(ledger.acquire(&request(0, &executors, Normal, 9), ms(0)), Err(refused));
    }
    let many = SlotLedger::SLOTS_MAX + 1;
    let refused = LedgerRefused::TooManySlots { given: many };
    assert_eq!(ledger.declare("red", many, ms(0)), Err(refused));
    assert_eq!(ledger, before);
}

#[test]
fn lines_and_executors_are_bounded() {
    let mut ledger = SlotLedger::new(0);
    for number in 0..SlotLedger::EXECUTORS_MAX {
        ledger.declare(&number.to_string(), 1, ms(0)).unwrap();
    }
    assert_eq!(ledger.declare("more", 1, ms(0)), Err(LedgerRefused::TooManyExecutors));
    ledger.declare("0", 2, ms(0)).unwrap();
    ledger.declare("more", 1, SlotLedger::DECLARED_FOR).unwrap();
    // One in a thousand lines at a time: the bound is on places, and five hundred holders reach it.
    let lines: Vec<Box<str>> = (0..1_000).map(|number| format!("x{number}").into()).collect();
    let wide = |number: usize| SlotRequest {
        holder: format!("t{number}@1").parse().unwrap(),
        priority: Normal,
        executors: lines.clone(),
        ttl: ms(900),
    };
    let fit = SlotLedger::STANDING_MAX / lines.len();
    for number in 0..fit {
        assert_eq!(waits_behind(ledger.acquire(&wide(number), ms(0))), number as u64);
    }
    assert_eq!(ledger.acquire(&wide(fit), ms(0)), Err(LedgerRefused::LineFull));
    assert_eq!(waits_behind(ledger.acquire(&wide(7), ms(0))), 7, "who has a place keeps it");
    assert!(LedgerRefused::LineFull.is_temporary());
}
