//! Every interleaving of small groups of threads over one tracker.
//!
//! `make loom`: it needs a feature of its own.

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use tidegate_core::admission::MessagePriority::{Critical, High, Low, Normal};
use tidegate_core::admission::{
    InFlightTracker, MessagePriority, OwnedPermit, PriorityLimits, Sharing,
};

/// Runs a model in every interleaving there is, whatever the environment says: so few operations need no
/// bound on preemptions to be explored in seconds.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = None;
    builder.check(model);
}

fn tracker(global: u16, high: u16, normal: u16, low: u16) -> Arc<InFlightTracker> {
    shared(PriorityLimits::new(global, high, normal, low), Sharing::Strict)
}

fn shared(limits: PriorityLimits, sharing: Sharing) -> Arc<InFlightTracker> {
    Arc::new(InFlightTracker::new(limits, sharing))
}

/// Asks once for each of these priorities, each on a thread of its own, the last on this one. Whatever was
/// granted is returned and therefore held to the end.
fn race<const N: usize>(
    tracker: &Arc<InFlightTracker>,
    priorities: [MessagePriority; N],
) -> [Option<OwnedPermit>; N] {
    let mut others: Vec<_> = priorities[..N - 1]
        .iter()
        .map(|&priority| {
            let tracker = Arc::clone(tracker);
            Some(thread::spawn(move || tracker.try_acquire_owned(priority).ok()))
        })
        .collect();
    let mut mine = tracker.try_acquire_owned(priorities[N - 1]).ok();
    std::array::from_fn(|index| match others.get_mut(index) {
        Some(handle) => handle.take().expect("joined once").join().expect("a thread failed"),
        None => mine.take(),
    })
}

fn granted<const N: usize>(permits: &[Option<OwnedPermit>; N]) -> usize {
    permits.iter().flatten().count()
}

#[test]
fn loom_the_last_place_goes_to_exactly_one_of_two() {
    explore(|| {
        let tracker = tracker(10, 5, 3, 1);
        let permits = race(&tracker, [Low, Low]);
        assert_eq!(granted(&permits), 1);
        assert_eq!(tracker.lanes().of(Low), 1);
        assert_eq!(tracker.stats().low_shed, 1);
    });
}

#[test]
fn loom_the_last_place_goes_to_exactly_one_of_three() {
    explore(|| {
        let tracker = tracker(10, 5, 3, 1);
        let permits = race(&tracker, [Low, Low, Low]);
        assert_eq!(granted(&permits), 1);
        assert_eq!(tracker.stats().low_shed, 2);
    });
}

#[test]
fn loom_the_global_limit_is_exact_while_priorities_race() {
    explore(|| {
        let tracker = tracker(2, 2, 2, 2);
        let permits = race(&tracker, [High, Normal, Low]);
        assert_eq!(granted(&permits), 2);
        assert_eq!(tracker.lanes().total(), 2);
        let stats = tracker.stats();
        assert_eq!(stats.shed_by_reason.map(|of| of.global_limit).iter().sum::<u64>(), 1);
        assert_eq!(stats.shed_by_reason.map(|of| of.priority_limit), [0; 4]);
    });
}

#[test]
fn loom_critical_is_admitted_while_others_race_for_the_last_place() {
    explore(|| {
        let tracker = tracker(1, 1, 1, 1);
        let permits = race(&tracker, [Critical, Normal, Critical]);
        assert!(permits[0].is_some() && permits[2].is_some(), "Critical was refused");
        assert!(permits[1].is_some(), "a reserve of 0 leaves the place to Normal");
        assert_eq!(tracker.stats().critical_shed, 0);
    });
}

#[test]
fn loom_critical_within_its_reserve_counts_toward_the_global_limit() {
    explore(|| {
        let limits = PriorityLimits { critical_reserve: 1, ..PriorityLimits::new(2, 2, 2, 2) };
        let tracker = shared(limits, Sharing::Strict);
        let _high = tracker.try_acquire(High).expect("both places are free");
        let permits = race(&tracker, [Critical, Normal]);
        assert!(permits[0].is_some(), "Critical was refused");
        // Normal came first and took the last place, or Critical did and Normal was refused: either way one
        // more of Normal is refused now.
        assert!(tracker.try_acquire(Normal).is_err());
    });
}

#[test]
fn loom_a_place_given_back_is_handed_over_with_what_was_written_under_it() {
    explore(|| {
        let tracker = tracker(10, 5, 3, 1);
        let written = Arc::new(AtomicU64::new(0));
        let permit = tracker.try_acquire_owned(Low).expect("the place is free");
        let holder = {
            let written = Arc::clone(&written);
            thread::spawn(move || {
                written.store(1, Ordering::Relaxed);
                permit.success();
            })
        };
        if let Ok(_mine) = tracker.try_acquire(Low) {
            // Relaxed on purpose: only the hand-over of the place orders this after the store.
            assert_eq!(written.load(Ordering::Relaxed), 1);
        }
        holder.join().unwrap();
        assert!(tracker.try_acquire(Low).is_ok(), "the place is free for good");
    });
}

#[test]
fn loom_a_place_is_never_held_twice_while_it_changes_hands() {
    explore(|| {
        let tracker = tracker(10, 5, 3, 1);
        let holding = Arc::new(AtomicU64::new(0));
        let visit = |tracker: &InFlightTracker, holding: &AtomicU64| {
            if let Ok(permit) = tracker.try_acquire(Low) {
                assert_eq!(holding.fetch_add(1, Ordering::Relaxed), 0, "two hold one place");
                holding.fetch_sub(1, Ordering::Relaxed);
                permit.success();
            }
        };
        let other = {
            let (tracker, holding) = (Arc::clone(&tracker), Arc::clone(&holding));
            thread::spawn(move || {
                visit(&tracker, &holding);
                visit(&tracker, &holding);
            })
        };
        visit(&tracker, &holding);
        other.join().unwrap();
        assert_eq!(tracker.lanes().total(), 0);
    });
}

#[test]
fn loom_totals_never_run_backwards_nor_ahead_of_the_truth() {
    explore(|| {
        let tracker = tracker(10, 5, 3, 2);
        let asked = Arc::new(AtomicU64::new(0));
        let worker = {
            let (tracker, asked) = (Arc::clone(&tracker), Arc::clone(&asked));
            thread::spawn(move || {
                for _ in 0..2 {
                    asked.fetch_add(1, Ordering::Relaxed);
                    tracker.try_acquire(Low).expect("two places for one").success();
                }
            })
        };
        let first = tracker.stats();
        // Ordered after the stats only by what they read: they may not know of an admission that this
        // thread can't know of.
        let asked_by_then = asked.load(Ordering::Relaxed);
        assert!(first.low_acquired <= asked_by_then, "{first:?} ahead of {asked_by_then}");
        assert!(first.low_in_flight <= 1);
        let second = tracker.stats();
        assert!(second.low_acquired >= first.low_acquired, "{second:?} behind {first:?}");
        assert!(second.finished[Low.index()].success >= first.finished[Low.index()].success);
        worker.join().unwrap();
        assert_eq!(tracker.stats().low_acquired, 2);
    });
}

#[test]
fn loom_totals_of_two_readers_agree_on_the_order() {
    explore(|| {
        let tracker = tracker(10, 5, 3, 2);
        let permit = tracker.try_acquire_owned(Low).expect("the place is free");
        let worker = thread::spawn(move || permit.success());
        let reader = {
            let tracker = Arc::clone(&tracker);
            thread::spawn(move || tracker.stats().low_acquired)
        };
        let read = reader.join().unwrap();
        // The join orders the two readers, so the second may not say less, whatever it reads of the counters.
        assert!(tracker.stats().low_acquired >= read);
        worker.join().unwrap();
        assert_eq!(tracker.stats().low_acquired, 1);
    });
}

#[test]
fn loom_a_permit_frees_its_place_once_when_its_holder_unwinds() {
    explore(|| {
        let tracker = tracker(10, 5, 3, 2);
        let dropped = tracker.try_acquire_owned(Low).expect("both places are free");
        let other = {
            let tracker = Arc::clone(&tracker);
            thread::spawn(move || {
                let unwound = panic::catch_unwind(AssertUnwindSafe(|| {
                    let _permit = tracker.try_acquire(Low).expect("the second place is free");
                    // As a panic unwinds, without its message.
                    panic::resume_unwind(Box::new("holder"));
                }));
                assert!(unwound.is_err());
            })
        };
        drop(dropped);
        other.join().unwrap();
        let stats = tracker.stats();
        assert_eq!(stats.low_in_flight, 0);
        assert_eq!(stats.finished[Low.index()].ignored, 2);
        assert_eq!(stats.low_acquired, 2);
    });
}

#[test]
fn loom_borrow_lends_the_last_idle_place_of_high_to_exactly_one() {
    explore(|| {
        // Two places of High, both lendable: under pressure means two of them used.
        let tracker = shared(PriorityLimits::new(10, 2, 1, 1), Sharing::Borrow);
        let _own = tracker.try_acquire(Normal).expect("its own place");
        let _borrowed = tracker.try_acquire(Normal).expect("one idle place of High");
        let permits = race(&tracker, [Normal, Normal]);
        assert_eq!(granted(&permits), 1);
        assert_eq!(tracker.lanes().of(Normal), 3);
    });
}

#[test]
fn loom_borrow_never_lends_what_high_has_taken_and_never_refuses_high() {
    explore(|| {
        let tracker = shared(PriorityLimits::new(10, 2, 1, 1), Sharing::Borrow);
        let _own = tracker.try_acquire(Normal).expect("its own place");
        let permits = race(&tracker, [High, Normal, Normal]);
        assert!(permits[0].is_some(), "High is refused at the global limit only");
        let borrowed = granted(&permits) - 1;
        // Whoever came first: at least one place was idle, and never more than two were.
        assert!((1..=2).contains(&borrowed), "{borrowed}");
        assert!(tracker.try_acquire(Normal).is_err(), "nothing is left to lend");
    });
}
