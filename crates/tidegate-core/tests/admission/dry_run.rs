//! A tracker whose limits only count what they would refuse.

use std::sync::Arc;
use tidegate_core::admission::{InFlightTracker, MessagePriority, PriorityLimits, Sharing};

#[test]
fn a_place_beyond_the_limit_is_counted_and_given_back_like_any_other() {
    let limits = PriorityLimits::new(4, 2, 2, 1);
    let tracker = Arc::new(InFlightTracker::new(limits, Sharing::Strict));
    let held: Vec<_> =
        (0..10).map(|_| tracker.admit_beyond_limits(MessagePriority::Low).unwrap()).collect();
    assert_eq!(tracker.stats().low_in_flight, 10);
    assert!(tracker.try_acquire(MessagePriority::High).is_err(), "the global limit is long passed");
    assert!(tracker.try_acquire(MessagePriority::Critical).is_ok());
    held.into_iter().for_each(|permit| permit.success());
    let stats = tracker.stats();
    assert_eq!((stats.low_in_flight, stats.low_acquired, stats.low_shed), (0, 10, 0));
    assert!(tracker.try_acquire(MessagePriority::Low).is_ok());
}
