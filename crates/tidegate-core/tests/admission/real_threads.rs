//! Real threads over one tracker: no limit is ever exceeded, and the books balance at the end.

// Threads and shared state are what is under test here; the decisions themselves use neither.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use tidegate_core::admission::MessagePriority::{High, Low, Normal};
use tidegate_core::admission::{
    InFlightTracker, MessagePriority, Outcome, Permit, PriorityLimits, Reason, Sharing,
};

const THREADS: u64 = 8;
const STEPS: usize = 500_000;
/// Maximum permits of one thread. Above the global limit, so that limits are reached even where the
/// threads hardly overlap.
const HELD_MAX: usize = 120;
const LIMITS: PriorityLimits = PriorityLimits::new(100, 50, 30, 20);

/// Permits in use at this moment, as counted by their holders: up after a grant and down before the
/// place is given back, so never more than the tracker has granted.
#[derive(Default)]
struct Witness {
    now: [AtomicU64; 4],
    most: [AtomicU64; 4],
    /// All but Critical, which no limit binds.
    bounded_now: AtomicU64,
    bounded_most: AtomicU64,
}

/// Observations of one thread.
#[derive(Default)]
struct Tally {
    acquired: [u64; 4],
    shed: [[u64; 2]; 4],
    finished: [[u64; 3]; 4],
}

// === impl Witness ===

impl Witness {
    fn granted(&self, priority: MessagePriority) {
        let lane = priority.index();
        let now = self.now[lane].fetch_add(1, Ordering::SeqCst) + 1;
        self.most[lane].fetch_max(now, Ordering::SeqCst);
        if priority != MessagePriority::Critical {
            let now = self.bounded_now.fetch_add(1, Ordering::SeqCst) + 1;
            self.bounded_most.fetch_max(now, Ordering::SeqCst);
        }
    }

    fn giving_back(&self, priority: MessagePriority) {
        self.now[priority.index()].fetch_sub(1, Ordering::SeqCst);
        if priority != MessagePriority::Critical {
            self.bounded_now.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn most(&self, priority: MessagePriority) -> u64 {
        self.most[priority.index()].load(Ordering::SeqCst)
    }
}

// === impl Tally ===

impl Tally {
    fn add(&mut self, other: &Self) {
        for lane in 0..4 {
            self.acquired[lane] += other.acquired[lane];
            for reason in 0..2 {
                self.shed[lane][reason] += other.shed[lane][reason];
            }
            for outcome in 0..3 {
                self.finished[lane][outcome] += other.finished[lane][outcome];
            }
        }
    }
}

/// A different fixed sequence for each thread; what varies from run to run is how they interleave.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }
}

fn hammer(tracker: &InFlightTracker, witness: &Witness, seed: u64) -> Tally {
    let mut dice = Dice(seed);
    let mut tally = Tally::default();
    let mut held: Vec<Permit<&InFlightTracker>> = Vec::with_capacity(HELD_MAX);
    let end = |permit: Permit<&InFlightTracker>, outcome: Outcome, tally: &mut Tally| {
        let priority = permit.priority();
        witness.giving_back(priority);
        permit.finish(outcome);
        tally.finished[priority.index()][outcome.index()] += 1;
    };
    for _ in 0..STEPS {
        let ends = held.len() == HELD_MAX || (!held.is_empty() && dice.below(5) < 2);
        if ends {
            let permit = held.swap_remove(dice.below(held.len()));
            end(permit, Outcome::ALL[dice.below(3)], &mut tally);
            continue;
        }
        // Little Critical: it is never refused, and would soon be all that is held.
        let priority = match dice.below(16) {
            0 => MessagePriority::Critical,
            other => [High, Normal, Low][other % 3],
        };
        match tracker.try_acquire(priority) {
            Ok(permit) => {
                witness.granted(priority);
                tally.acquired[priority.index()] += 1;
                held.push(permit);
            }
            Err(refusal) => tally.shed[priority.index()][refusal.reason.index()] += 1,
        }
    }
    held.into_iter().for_each(|permit| end(permit, Outcome::Ignored, &mut tally));
    tally
}

fn hammer_from_all_threads(sharing: Sharing) -> Witness {
    let tracker = InFlightTracker::new(LIMITS, sharing);
    let witness = Witness::default();
    let start = Barrier::new(THREADS as usize);
    let mut sum = Tally::default();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                let (tracker, witness, start) = (&tracker, &witness, &start);
                scope.spawn(move || {
                    start.wait();
                    hammer(tracker, witness, seed)
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| sum.add(&thread.join().expect("a thread failed")));
    });
    assert_balanced(&tracker, &sum);
    witness
}

fn assert_balanced(tracker: &InFlightTracker, sum: &Tally) {
    let stats = tracker.stats();
    assert_eq!(stats.total_in_flight, 0);
    assert_eq!(stats.critical_shed, 0);
    for priority in MessagePriority::ALL {
        let lane = priority.index();
        assert_eq!(stats.acquired(priority), sum.acquired[lane], "{priority}");
        assert_eq!(stats.acquired(priority), stats.finished[lane].total(), "{priority}");
        assert_eq!(Reason::ALL.map(|reason| stats.shed_by_reason[lane].of(reason)), sum.shed[lane]);
        assert_eq!(
            Outcome::ALL.map(|outcome| stats.finished[lane].of(outcome)),
            sum.finished[lane]
        );
        assert!(stats.acquired(priority) > 0, "{priority} never got in: nothing was tested");
    }
    assert!(sum.shed.iter().flatten().sum::<u64>() > 0, "nothing was refused: nothing was tested");
}

#[test]
fn strict_limits_hold_under_real_threads() {
    let witness = hammer_from_all_threads(Sharing::Strict);
    for priority in [High, Normal, Low] {
        let (most, limit) = (witness.most(priority), u64::from(LIMITS.of(priority)));
        assert!(most <= limit, "{most} of {priority} at once, the limit is {limit}");
    }
    let most = witness.bounded_most.load(Ordering::SeqCst);
    assert!(most <= u64::from(LIMITS.global_limit), "{most} at once");
}

#[test]
fn borrow_limits_hold_under_real_threads() {
    let witness = hammer_from_all_threads(Sharing::Borrow);
    // Its own 30 and what is lendable of High: nine tenths of 50.
    assert!(witness.most(Normal) <= 75, "{} of normal at once", witness.most(Normal));
    assert!(witness.most(Low) <= 20, "{} of low at once", witness.most(Low));
    assert!(witness.most(High) <= 100, "{} of high at once", witness.most(High));
    let most = witness.bounded_most.load(Ordering::SeqCst);
    assert!(most <= u64::from(LIMITS.global_limit), "{most} at once");
}
