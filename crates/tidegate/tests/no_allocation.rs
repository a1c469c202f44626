//! Deciding touches no heap: not to admit, not to release, not to refuse, not to look.

use allocation_counter::measure;
use std::hint::black_box;
use std::sync::Arc;
use tidegate::admission::{RetryAdvisor, RetryBounds};
use tidegate::{InFlightTracker, MessagePriority, Outcome, PriorityLimits, Sharing};

const ROUNDS: usize = 1000;

fn tracker(sharing: Sharing) -> Arc<InFlightTracker> {
    Arc::new(InFlightTracker::new(PriorityLimits::default(), sharing))
}

fn allocations(run: impl FnOnce()) -> u64 {
    measure(run).count_total
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(black_box(Box::new(1)))), 1);
}

#[test]
fn admitting_and_releasing_allocates_nothing() {
    for sharing in [Sharing::Strict, Sharing::Borrow] {
        let tracker = tracker(sharing);
        let count = allocations(|| {
            for _ in 0..ROUNDS {
                for priority in MessagePriority::ALL {
                    for outcome in Outcome::ALL {
                        tracker.try_admit(priority).expect("nothing else runs").finish(outcome);
                        let owned = tracker.try_admit_owned(priority).expect("nothing else runs");
                        drop(black_box(owned));
                    }
                }
            }
        });
        assert_eq!(count, 0);
    }
}

#[test]
fn refusing_allocates_nothing() {
    let tracker = Arc::new(InFlightTracker::new(PriorityLimits::new(0, 0, 0, 0), Sharing::Strict));
    let count = allocations(|| {
        for _ in 0..ROUNDS {
            for priority in [MessagePriority::High, MessagePriority::Normal, MessagePriority::Low] {
                assert!(black_box(tracker.try_admit(priority)).is_err());
                assert!(black_box(tracker.try_admit_owned(priority)).is_err());
            }
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn looking_and_advising_allocates_nothing() {
    let tracker = tracker(Sharing::Strict);
    let mut advisor = RetryAdvisor::new(RetryBounds::default());
    let held: Vec<_> = (0..200).filter_map(|_| tracker.try_acquire(MessagePriority::Low)).collect();
    let refusal = tracker.try_admit(MessagePriority::Low).expect_err("all 200 are taken");
    let count = allocations(|| {
        for tick in 0..ROUNDS as u64 {
            advisor.observe(std::time::Duration::from_millis(tick * 100), &tracker.stats());
            black_box(advisor.advise(refusal));
            black_box(tracker.load_state());
        }
    });
    drop(held);
    assert_eq!(count, 0);
}
