//! Deciding touches no heap: not to admit, not to release, not to refuse, not to look, and not to queue once a
//! queue has its buffers.

use allocation_counter::measure;
use std::hint::black_box;
use std::sync::Arc;
use tidegate::admission::{RetryAdvisor, RetryBoard, RetryBounds};
use tidegate::outbox::{QueueConfig, RobustQueue};
use tidegate::{InFlightTracker, MessageClass, MessagePriority, Outcome, PriorityLimits, Sharing};

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
                        tracker.try_acquire(priority).expect("nothing else runs").finish(outcome);
                        let owned = tracker.try_acquire_owned(priority).expect("nothing else runs");
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
                assert!(black_box(tracker.try_acquire(priority)).is_err());
                assert!(black_box(tracker.try_acquire_owned(priority)).is_err());
            }
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn looking_and_advising_allocates_nothing() {
    let tracker = tracker(Sharing::Strict);
    let (mut advisor, board) = (RetryAdvisor::new(), RetryBoard::new(RetryBounds::default()));
    let held: Vec<_> =
        (0..200).filter_map(|_| tracker.try_acquire(MessagePriority::Low).ok()).collect();
    let refusal = tracker.try_acquire(MessagePriority::Low).expect_err("all 200 are taken");
    let count = allocations(|| {
        for tick in 0..ROUNDS as u64 {
            let now = std::time::Duration::from_millis(tick * 100);
            advisor.observe(now, &tracker.stats());
            board.publish(&advisor);
            black_box(board.take(refusal, now));
            black_box(tracker.load_state());
        }
    });
    drop(held);
    assert_eq!(count, 0);
}

#[test]
fn a_queue_that_has_its_buffers_allocates_nothing() {
    let classes = [
        MessageClass::Data,
        MessageClass::Telemetry,
        MessageClass::Dispatch,
        MessageClass::Control,
    ];
    let mut queue = RobustQueue::new(QueueConfig::default()).expect("the defaults are valid");
    let mut batch = Vec::with_capacity(64);
    // More than it holds, in and out again: every way through it, at the bound and below.
    let mut fill_and_drain = |queue: &mut RobustQueue<usize>| {
        for class in classes {
            for number in 0..ROUNDS {
                let _ = black_box(queue.put(class, number));
            }
            while queue.get_batch(64, &mut batch) > 0 {
                let last = batch.pop().expect("there was at least one");
                let _ = black_box(queue.put_back(class, last));
                black_box(queue.get());
                black_box(queue.stats());
                batch.clear();
            }
        }
    };
    assert!(allocations(|| fill_and_drain(&mut queue)) > 0, "it grows at first");
    assert_eq!(allocations(|| fill_and_drain(&mut queue)), 0);
}
