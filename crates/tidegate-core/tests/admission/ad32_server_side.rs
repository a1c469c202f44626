//! The unit tests that AD-32 asks for of its server side, under its numbers, and what its own code got wrong.

use tidegate_core::admission::MessagePriority::{Critical, High, Low, Normal};
use tidegate_core::admission::{
    InFlightTracker, LoadState, MessagePriority, Outcome, Permit, PriorityLimits, Reason, Sharing,
};

type Held<'a> = Vec<Permit<&'a InFlightTracker>>;

/// The defaults of AD-32: 1000 in all, 500 High, 300 Normal, 200 Low.
fn tracker() -> InFlightTracker {
    InFlightTracker::new(PriorityLimits::default(), Sharing::Strict)
}

/// Takes what there is of a priority, `most` at the most.
fn fill(tracker: &InFlightTracker, priority: MessagePriority, most: usize) -> Held<'_> {
    (0..most).map_while(|_| tracker.try_acquire(priority).ok()).collect()
}

fn admits(tracker: &InFlightTracker, priority: MessagePriority) -> bool {
    tracker.try_acquire(priority).is_ok()
}

#[test]
fn unit_1_critical_always_acquired_regardless_of_load() {
    for sharing in [Sharing::Strict, Sharing::Borrow] {
        for limits in [PriorityLimits::default(), PriorityLimits::new(0, 0, 0, 0)] {
            let tracker = InFlightTracker::new(limits, sharing);
            let _full: Vec<_> =
                [High, Normal, Low].map(|priority| fill(&tracker, priority, 2000)).into();
            assert!(!admits(&tracker, High), "the tracker is full");
            let critical = fill(&tracker, Critical, 5000);
            assert_eq!(critical.len(), 5000);
            assert_eq!(tracker.stats().critical_shed, 0);
        }
    }
}

#[test]
fn unit_2_low_shed_before_normal_before_high() {
    let tracker = tracker();
    let mut held = Held::new();
    let mut first_shed = Vec::new();
    // Load rises evenly: one of each a round.
    for _ in 0..600 {
        for priority in [High, Normal, Low] {
            match tracker.try_acquire(priority) {
                Ok(permit) => held.push(permit),
                Err(_) if first_shed.contains(&priority) => {}
                Err(_) => {
                    first_shed.push(priority);
                    let expected = match priority {
                        Low => LoadState::Pressured,
                        _ => LoadState::Overloaded,
                    };
                    assert_eq!(tracker.load_state(), expected, "{priority} was shed");
                }
            }
        }
    }
    assert_eq!(first_shed, [Low, Normal, High]);
}

#[test]
fn unit_3_per_priority_limits_enforced_independently() {
    for (priority, limit) in [(High, 500), (Normal, 300), (Low, 200)] {
        let tracker = tracker();
        let held = fill(&tracker, priority, 2000);
        assert_eq!(held.len(), limit, "{priority}");
        let refusal = tracker.try_acquire(priority).expect_err("it is at its limit");
        assert_eq!(refusal.reason, Reason::PriorityLimit);
        for other in MessagePriority::ALL.into_iter().filter(|&other| other != priority) {
            assert!(admits(&tracker, other), "{other} while {priority} is at its limit");
        }
    }
}

#[test]
fn unit_4_release_correctly_decrements_counters() {
    for (priority, outcome) in
        MessagePriority::ALL.into_iter().zip(Outcome::ALL.into_iter().cycle())
    {
        let tracker = tracker();
        let mut held = fill(&tracker, priority, 10);
        let others = fill(&tracker, if priority == Low { High } else { Low }, 7);
        for left in (0..10).rev() {
            held.pop().expect("ten were granted").finish(outcome);
            assert_eq!(tracker.stats().in_flight(priority), left);
            assert_eq!(tracker.stats().total_in_flight, left + 7, "nothing else has moved");
        }
        drop(others);
        let stats = tracker.stats();
        assert_eq!(stats.total_in_flight, 0);
        assert_eq!(stats.acquired(priority), 10);
        assert_eq!(stats.finished[priority.index()].of(outcome), 10);
    }
}

#[test]
fn a_place_given_back_is_granted_again_at_the_limit() {
    let tracker = tracker();
    let mut held = fill(&tracker, Low, 2000);
    assert!(!admits(&tracker, Low));
    held.pop();
    assert!(admits(&tracker, Low));
}

/// In the origin's own code 1,000 Critical in flight reach the global limit and keep everything else out.
#[test]
fn a_thousand_critical_in_flight_do_not_block_everything_else() {
    let tracker = tracker();
    let _critical = fill(&tracker, Critical, 1000);
    let high = fill(&tracker, High, 2000);
    let normal = fill(&tracker, Normal, 2000);
    let low = fill(&tracker, Low, 2000);
    // All that the reserve of a tenth leaves of 1,000: 500, 300, and 100 of the 200 of Low.
    assert_eq!((high.len(), normal.len(), low.len()), (500, 300, 100));
    let refusal = tracker.try_acquire(Low).expect_err("the global limit is reached");
    assert_eq!(refusal.reason, Reason::GlobalLimit);
}

#[test]
fn critical_below_its_reserve_counts_toward_the_global_limit_one_by_one() {
    let tracker = tracker();
    let _critical = fill(&tracker, Critical, 40);
    let others = [High, Normal, Low].map(|priority| fill(&tracker, priority, 2000));
    assert_eq!(others.each_ref().map(Vec::len).iter().sum::<usize>(), 960);
}

/// The lane of Critical counts to 65,535; what is beyond is counted beside it.
#[test]
fn critical_beyond_what_its_lane_counts_is_admitted_counted_and_given_back() {
    let tracker = tracker();
    let mut held = fill(&tracker, Critical, 70_000);
    assert_eq!(held.len(), 70_000);
    let stats = tracker.stats();
    assert_eq!((stats.critical_in_flight, stats.critical_acquired), (70_000, 70_000));
    assert_eq!(tracker.lanes().of(High), 0, "it has not run over into the next lane");
    assert!(admits(&tracker, High));
    // From both ends, so that places of either kind come free in turn.
    while held.len() > 1 {
        held.swap_remove(0).success();
        held.pop().expect("one is left").success();
    }
    drop(held);
    let stats = tracker.stats();
    assert_eq!((stats.total_in_flight, stats.critical_shed), (0, 0));
    assert_eq!(stats.critical_acquired, 70_000);
    assert_eq!(fill(&tracker, Low, 2000).len(), 200, "all is as it was");
}
