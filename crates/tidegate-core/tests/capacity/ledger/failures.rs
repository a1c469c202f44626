//! Each way in which such a ledger is known to fail, by its name.

use super::asking::*;
use tidegate_core::admission::MessagePriority::{Critical, High, Low, Normal};
use tidegate_core::capacity::{LedgerRefused, SlotLedger, SlotRequest};

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
fn who_has_stopped_asking_does_not_count_as_waiting() {
    let mut ledger = one_slot();
    granted(ledger.acquire(&request(0, &["red"], Normal, 90), ms(0)));
    waits_behind(ledger.acquire(&request(2, &["red"], Normal, 30), ms(0)));
    assert_eq!(ledger.waiting(ms(29)), 1);
    assert_eq!(ledger.waiting(ms(30)), 0);
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
    let fit = SlotLedger::QUEUE_ENTRIES_MAX / lines.len();
    for number in 0..fit {
        assert_eq!(waits_behind(ledger.acquire(&wide(number), ms(0))), number as u64);
    }
    assert_eq!(ledger.acquire(&wide(fit), ms(0)), Err(LedgerRefused::QueueFull));
    assert_eq!(waits_behind(ledger.acquire(&wide(7), ms(0))), 7, "who has a place keeps it");
    assert!(LedgerRefused::QueueFull.is_temporary());
}

/// Found by a random sequence once: the slot went to one whose time in the line was over in the same moment.
#[test]
fn a_place_that_ends_with_the_lease_gets_nothing() {
    let mut ledger = one_slot();
    granted(ledger.acquire(&request(0, &["red"], Normal, 15), ms(0)));
    waits_behind(ledger.acquire(&request(1, &["red"], Normal, 15), ms(0)));
    granted(ledger.acquire(&request(2, &["red"], Normal, 1), ms(15)));
}
