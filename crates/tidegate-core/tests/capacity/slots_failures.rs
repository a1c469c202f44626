//! Known ways to lose or double a slot, each excluded by a test.

use std::time::Duration;
use tidegate_core::capacity::{Cancelled, ExecuteRefused, ExecutorSlots};
use tidegate_core::task::ExecutionKey;

const S: Duration = Duration::from_secs(1);

fn key(text: &str) -> ExecutionKey {
    text.parse().unwrap()
}

/// A counter that is decremented leaks a slot when its caller crashes between taking and giving back.
#[test]
fn a_caller_that_crashes_after_it_reserved_leaks_nothing() {
    let mut slots = ExecutorSlots::new(1, 0);
    slots.reserve(&key("crashed"), 5 * S, Duration::ZERO).unwrap();
    assert_eq!(slots.execute(&key("next"), 1, None, None, 4 * S), Err(ExecuteRefused::Full));
    assert!(slots.execute(&key("next"), 1, None, None, 5 * S).unwrap().first);
}

/// A counter that is incremented twice by one release grants a slot that there is not.
#[test]
fn a_release_that_comes_twice_frees_one_slot() {
    let mut slots = ExecutorSlots::new(1, 0);
    let one = slots.execute(&key("one"), 1, None, None, S).unwrap();
    assert!(slots.finish(&key("one"), one.fence));
    slots.execute(&key("two"), 1, None, None, S).unwrap();
    assert!(!slots.finish(&key("one"), one.fence), "the same word again");
    assert_eq!(slots.execute(&key("three"), 1, None, None, S), Err(ExecuteRefused::Full));
}

/// A counter that was decremented below zero for a moment refuses somebody who could have been served.
#[test]
fn those_who_are_refused_take_nothing_from_those_who_come_next() {
    let mut slots = ExecutorSlots::new(1, 0);
    let one = slots.execute(&key("one"), 1, None, None, S).unwrap();
    for nth in 0..10 {
        let late = key(&format!("late{nth}"));
        assert_eq!(slots.execute(&late, 1, None, None, S), Err(ExecuteRefused::Full));
    }
    assert!(slots.finish(&key("one"), one.fence));
    assert!(slots.execute(&key("next"), 1, None, None, S).unwrap().first);
}

/// The reply to an execution is lost, its reservation runs out, the slot goes to another, and the execution is
/// sent again with the reservation that it had.
#[test]
fn a_reservation_whose_time_is_over_runs_nothing_beside_its_successor() {
    let mut slots = ExecutorSlots::new(1, 0);
    let held = slots.reserve(&key("late"), S, Duration::ZERO).unwrap();
    let next = slots.execute(&key("next"), 1, None, None, 2 * S).unwrap();
    let late = slots.execute(&key("late"), 1, Some(held.fence), None, 2 * S);
    assert_eq!(late, Err(ExecuteRefused::Gone));
    assert!(slots.finish(&key("next"), next.fence));
    let late = slots.execute(&key("late"), 1, Some(held.fence), None, 2 * S);
    assert_eq!(
        late,
        Err(ExecuteRefused::Gone),
        "also when there is a slot: it was told to reserve again"
    );
}

/// The reply to a commit is lost, and the commit is sent again, while it runs and after it has ended.
#[test]
fn a_commit_that_is_sent_again_does_not_run_the_task_twice() {
    let mut slots = ExecutorSlots::new(2, 0);
    let held = slots.reserve(&key("one"), S, Duration::ZERO).unwrap();
    let mut commit = |now| {
        slots.execute(&key("one"), 1, Some(held.fence), None, now).map(|granted| granted.first)
    };
    assert_eq!(commit(Duration::ZERO), Ok(true));
    assert_eq!(commit(9 * S), Ok(false), "the reservation's own time does not matter any more");
    assert!(slots.finish(&key("one"), held.fence));
    let again = slots.execute(&key("one"), 1, Some(held.fence), None, 99 * S).unwrap();
    assert_eq!((again.first, again.fence), (false, held.fence));
}

/// A renewal that was on its way for long must not undo one that overtook it.
#[test]
fn a_renewal_never_shortens_a_lease() {
    let mut slots = ExecutorSlots::new(1, 0);
    let run = slots.execute(&key("one"), 1, None, Some(10 * S), Duration::ZERO).unwrap();
    assert!(slots.renew(&key("one"), Some(run.fence), 8 * S));
    assert!(slots.renew(&key("one"), Some(run.fence), S), "late, and still its own");
    assert_eq!(slots.next_expiry(), Some(18 * S));
    assert_eq!(slots.expire(17 * S), []);
    assert_eq!(slots.expire(18 * S), [(key("one"), run.fence)]);
}

/// The word of who asks too late must not depend on whether the timer was faster.
#[test]
fn a_lease_that_has_run_out_is_not_renewed() {
    let mut slots = ExecutorSlots::new(1, 0);
    let run = slots.execute(&key("one"), 1, None, Some(10 * S), Duration::ZERO).unwrap();
    assert!(!slots.renew(&key("one"), Some(run.fence), 10 * S), "before it is named");
    assert_eq!(slots.next_expiry(), Some(10 * S));
    assert_eq!(slots.expire(10 * S), [(key("one"), run.fence)]);
    assert!(!slots.renew(&key("one"), None, 10 * S), "while it is stopped");
    assert_eq!((slots.next_expiry(), slots.occupancy(11 * S).running), (None, 1));
}

/// A zombie of the attempt before neither ends, nor renews, nor is taken for its successor.
#[test]
fn the_attempt_before_has_no_word_in_the_next() {
    let mut slots = ExecutorSlots::new(2, 0);
    let first = slots.execute(&key("task@1"), 1, None, Some(S), Duration::ZERO).unwrap();
    let second = slots.execute(&key("task@2"), 1, None, Some(S), Duration::ZERO).unwrap();
    assert!(second.first && second.fence > first.fence);
    assert!(!slots.renew(&key("task@2"), Some(first.fence), S));
    assert!(!slots.finish(&key("task@2"), first.fence));
    assert_eq!(slots.occupancy(S).running, 2);
    assert_eq!(slots.expire(S).len(), 2, "and what it said prolonged nothing");
}

/// A request that is still on its way when its task is cancelled must not start it.
#[test]
fn what_was_cancelled_before_it_came_is_refused_and_its_slot_is_free() {
    let mut slots = ExecutorSlots::new(1, 0);
    let held = slots.reserve(&key("one"), 9 * S, Duration::ZERO).unwrap();
    assert_eq!(slots.cancel(&key("one")), Cancelled::Reserved);
    let late = slots.execute(&key("one"), 1, Some(held.fence), None, S);
    assert_eq!(late, Err(ExecuteRefused::Cancelled));
    assert_eq!(slots.occupancy(S).free(), 1);
}
