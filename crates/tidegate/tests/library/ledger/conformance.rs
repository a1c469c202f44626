use super::crowd;
use super::place::*;
use super::random;
use std::time::Duration;
use tidegate::MessagePriority::{Critical, High, Low, Normal};
use tidegate::ledger::{Ledger, LedgerError, LedgerRefused, SlotLease, SlotLedger, SlotRequest};

/// Each case by its name, once in memory and once on Redis.
macro_rules! on_every_ledger {
    ($($case:path as $name:ident,)*) => {
        mod in_memory {
            use super::*;
            $(#[test] fn $name() { run(async { $case(Place::memory().await).await }); })*
        }
        mod on_redis {
            use super::*;
            $(#[test] fn $name() { run(async { $case(Place::redis().await).await }); })*
        }
    };
}

on_every_ledger! {
    a_decr_leak as a_slot_of_a_crashed_holder_returns_and_does_not_leak,
    false_refusal as nobody_is_refused_falsely,
    doubled_release as a_doubled_release_gives_no_second_slot,
    a_renewal_that_shortens as a_renewal_never_shortens,
    a_holder_without_its_attempt as another_attempt_is_another_holder,
    a_busy_key_lost_for_good as an_executor_is_not_lost_for_good_with_its_holder,
    a_lost_reply as a_lost_reply_is_asked_for_again_and_is_the_same,
    rising_fences as fences_rise,
    a_foreign_fence as a_foreign_fence_changes_nothing,
    first_come as priority_first_then_arrival,
    several_executors as several_executors_and_the_lines_of_each,
    no_overtaking as who_asks_again_keeps_its_place_and_is_not_overtaken,
    a_place_ends as a_place_that_nobody_asks_for_again_ends,
    absence as a_slot_that_came_in_absence_is_kept_as_long_as_the_place_was,
    withdrawing as whoever_withdraws_is_not_waited_for,
    fewer_slots as fewer_slots_take_none_away,
    more_slots as more_slots_go_to_those_who_wait,
    reconciling as an_executor_s_own_word_ends_what_it_does_not_run,
    impossible as what_can_t_be_is_refused,
    another_manager as managers_wake_each_other,
    a_change_between as a_change_between_two_calls_is_not_missed,
    random::as_the_model_says as any_history_is_as_the_model_says,
    random::with_time as any_history_with_time_keeps_the_promises,
    crowd::three_slots as eight_take_turns_on_three_slots,
}

async fn a_decr_leak(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    for round in 0..3 {
        // It crashes with the slot, and nobody will ever release it.
        let crashed = request(&format!("crashed-{round}@1"), &["red"], SHORT);
        turn(&ledger, &crashed).await;
    }
    let lease = turn(&ledger, &request("next@1", &["red"], LONG)).await;
    assert_eq!((&*lease.executor, ledger.held("red").await), ("red", Ok(1)));
}

async fn false_refusal(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    // With DECR, one who finds it full makes it look full to the next, even after a release between the two.
    let first = granted(&ledger, &request("a@1", &["red"], LONG)).await;
    waits_behind(&ledger, &request("b@1", &["red"], LONG)).await;
    assert!(ledger.withdraw(&key("b@1")).await.unwrap());
    assert!(ledger.release(&first).await.unwrap());
    granted(&ledger, &request("c@1", &["red"], LONG)).await;
}

async fn doubled_release(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    let first = granted(&ledger, &request("a@1", &["red"], LONG)).await;
    assert!(ledger.release(&first).await.unwrap());
    granted(&ledger, &request("b@1", &["red"], LONG)).await;
    assert!(!ledger.release(&first).await.unwrap());
    assert_eq!(waits_behind(&ledger, &request("c@1", &["red"], LONG)).await, 0);
    assert_eq!(ledger.held("red").await, Ok(1));
}

async fn a_renewal_that_shortens(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 2).await.unwrap();
    let long = granted(&ledger, &request("a@1", &["red"], LONG)).await;
    assert!(ledger.renew(&long, Duration::from_millis(1)).await.unwrap());
    assert_eq!(granted(&ledger, &request("a@1", &["red"], Duration::from_millis(1))).await, long);
    // Another's end shows that by the ledger's clock the millisecond is over.
    granted(&ledger, &request("b@1", &["red"], SHORT)).await;
    until_held(&ledger, "red", 1).await;
    assert!(ledger.renew(&long, SHORT).await.unwrap());
}

async fn a_holder_without_its_attempt(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    let zombie = granted(&ledger, &request("task@1", &["red"], SHORT)).await;
    let successor = turn(&ledger, &request("task@2", &["red"], LONG)).await;
    assert_ne!(zombie.fence, successor.fence);
    assert!(!ledger.renew(&zombie, LONG).await.unwrap());
    assert!(!ledger.release(&zombie).await.unwrap());
    waits_behind(&ledger, &request("task@1", &["red"], LONG)).await;
    assert!(ledger.renew(&successor, LONG).await.unwrap());
}

async fn a_busy_key_lost_for_good(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 2).await.unwrap();
    granted(&ledger, &request("a@1", &["red"], SHORT)).await;
    granted(&ledger, &request("b@1", &["red"], SHORT)).await;
    // Nobody recovers anything, nobody waits: it is all there again.
    until_held(&ledger, "red", 0).await;
    granted(&ledger, &request("c@1", &["red"], LONG)).await;
    granted(&ledger, &request("d@1", &["red"], LONG)).await;
}

async fn a_lost_reply(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    let unheard = granted(&ledger, &request("a@1", &["red"], LONG)).await;
    // The executors have changed until it asks again, and there is room elsewhere.
    ledger.declare("green", 1).await.unwrap();
    let mut again = request("a@1", &["green", "red"], LONG);
    again.priority = Low;
    assert_eq!(granted(&ledger, &again).await, unheard);
    assert_eq!(ledger.held("green").await, Ok(0));
    assert!(ledger.release(&unheard).await.unwrap());
    assert!(!ledger.release(&unheard).await.unwrap(), "also when that reply was lost");
}

async fn rising_fences(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    let mut last = ledger.latest_fence().await.unwrap();
    for round in 0..20 {
        let holder = request(&format!("task-{}@1", round % 3), &["red"], LONG);
        let lease = granted(&ledger, &holder).await;
        assert!(lease.fence > last);
        last = lease.fence;
        assert_eq!(ledger.latest_fence().await, Ok(last));
        assert!(ledger.release(&lease).await.unwrap());
    }
}

async fn a_foreign_fence(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    let lease = granted(&ledger, &request("a@1", &["red"], LONG)).await;
    for fence in [0, lease.fence - 1, lease.fence + 1, u64::MAX] {
        let foreign = SlotLease { fence, ..lease.clone() };
        assert!(!ledger.release(&foreign).await.unwrap());
        assert!(!ledger.renew(&foreign, LONG).await.unwrap());
    }
    let other = SlotLease { holder: key("b@1"), ..lease.clone() };
    assert!(!ledger.release(&other).await.unwrap());
    assert_eq!(ledger.held("red").await, Ok(1));
    assert!(ledger.release(&lease).await.unwrap());
}

async fn first_come(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    let of = |holder: &str, priority| SlotRequest { priority, ..request(holder, &["red"], LONG) };
    let mut last = granted(&ledger, &of("first@1", Normal)).await;
    let line = [("l@1", Low), ("n1@1", Normal), ("n2@1", Normal), ("h@1", High), ("c@1", Critical)];
    for (holder, priority) in line {
        waits_behind(&ledger, &of(holder, priority)).await;
    }
    let turns =
        [("c@1", Critical), ("h@1", High), ("n1@1", Normal), ("n2@1", Normal), ("l@1", Low)];
    for (at, (holder, priority)) in turns.into_iter().enumerate() {
        assert_eq!(waits_behind(&ledger, &of("l@1", Low)).await, 4 - at as u64);
        assert!(ledger.release(&last).await.unwrap());
        last = granted(&ledger, &of(holder, priority)).await;
    }
}

async fn several_executors(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    ledger.declare("green", 1).await.unwrap();
    let red = granted(&ledger, &request("a@1", &["red", "green"], LONG)).await;
    let green = granted(&ledger, &request("b@1", &["red", "green"], LONG)).await;
    assert_eq!((&*red.executor, &*green.executor), ("red", "green"));
    waits_behind(&ledger, &request("only-red@1", &["red"], LONG)).await;
    waits_behind(&ledger, &request("any@1", &["red", "green"], LONG)).await;
    waits_behind(&ledger, &request("only-green@1", &["green"], LONG)).await;
    // A long line for red is nothing to one who would take green; but those who came first would take it too.
    assert!(ledger.release(&green).await.unwrap());
    assert_eq!(waits_behind(&ledger, &request("only-green@1", &["green"], LONG)).await, 0);
    let any = granted(&ledger, &request("any@1", &["red", "green"], LONG)).await;
    assert_eq!(&*any.executor, "green");
    ledger.declare("blue", 1).await.unwrap();
    let moved = granted(&ledger, &request("only-green@1", &["blue"], LONG)).await;
    assert_eq!(&*moved.executor, "blue");
    assert!(ledger.release(&any).await.unwrap());
    granted(&ledger, &request("late@1", &["green"], LONG)).await;
    assert!(ledger.release(&red).await.unwrap());
    granted(&ledger, &request("only-red@1", &["red"], LONG)).await;
}

async fn no_overtaking(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    let mut last = granted(&ledger, &request("holder@1", &["red"], LONG)).await;
    for number in 0..4 {
        let waiter = request(&format!("w{number}@1"), &["red"], LONG);
        assert_eq!(waits_behind(&ledger, &waiter).await, number);
    }
    for number in (0..4).rev() {
        // The last one asks most; it helps it nothing.
        let waiter = request(&format!("w{number}@1"), &["red", "green"], LONG);
        waits_behind(&ledger, &waiter).await;
    }
    for number in 0..4 {
        assert!(ledger.release(&last).await.unwrap());
        for later in number + 1..4 {
            waits_behind(&ledger, &request(&format!("w{later}@1"), &["red"], LONG)).await;
        }
        last = granted(&ledger, &request(&format!("w{number}@1"), &["red"], LONG)).await;
    }
}

async fn a_place_ends(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    let lease = granted(&ledger, &request("a@1", &["red"], LONG)).await;
    waits_behind(&ledger, &request("gone@1", &["red"], SHORT)).await;
    let patient = request("patient@1", &["red"], LONG);
    until(async || (waits_behind(&ledger, &patient).await == 0).then_some(())).await;
    assert!(ledger.release(&lease).await.unwrap());
    granted(&ledger, &patient).await;
    assert!(!ledger.withdraw(&key("gone@1")).await.unwrap());
}

async fn absence(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    let lease = granted(&ledger, &request("a@1", &["red"], LONG)).await;
    waits_behind(&ledger, &request("gone@1", &["red"], SHORT)).await;
    let patient = request("patient@1", &["red"], LONG);
    waits_behind(&ledger, &patient).await;
    // Whether the first still has its place or not: the slot is the second's when the first does not come.
    assert!(ledger.release(&lease).await.unwrap());
    let next = turn(&ledger, &patient).await;
    assert!(next.fence > lease.fence);
    assert_eq!(ledger.held("red").await, Ok(1));
}

async fn withdrawing(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 1).await.unwrap();
    let lease = granted(&ledger, &request("a@1", &["red"], LONG)).await;
    waits_behind(&ledger, &request("b@1", &["red"], LONG)).await;
    waits_behind(&ledger, &request("c@1", &["red"], LONG)).await;
    assert!(ledger.withdraw(&key("b@1")).await.unwrap());
    assert!(!ledger.withdraw(&key("b@1")).await.unwrap());
    assert!(ledger.release(&lease).await.unwrap());
    // The slot is the other's now, who does not know of it: it leaves, and the slot goes on.
    waits_behind(&ledger, &request("d@1", &["red"], LONG)).await;
    assert!(ledger.withdraw(&key("c@1")).await.unwrap());
    let told = granted(&ledger, &request("d@1", &["red"], LONG)).await;
    assert!(!ledger.withdraw(&key("d@1")).await.unwrap(), "what it was told of it has to release");
    assert!(ledger.release(&told).await.unwrap());
}

async fn fewer_slots(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 3).await.unwrap();
    let mut leases = Vec::new();
    for number in 0..3 {
        leases.push(granted(&ledger, &request(&format!("h{number}@1"), &["red"], LONG)).await);
    }
    ledger.declare("red", 1).await.unwrap();
    assert_eq!(ledger.held("red").await, Ok(3));
    assert!(ledger.renew(&leases[2], LONG).await.unwrap());
    for lease in &leases[..2] {
        assert!(ledger.release(lease).await.unwrap());
        waits_behind(&ledger, &request("waiter@1", &["red"], LONG)).await;
    }
    assert!(ledger.release(&leases[2]).await.unwrap());
    granted(&ledger, &request("waiter@1", &["red"], LONG)).await;
    ledger.declare("red", 0).await.unwrap();
    waits_behind(&ledger, &request("never@1", &["red"], LONG)).await;
}

async fn more_slots(place: Place) {
    let ledger = place.ledger();
    // Not declared yet, and one may wait for it.
    waits_behind(&ledger, &request("a@1", &["red"], LONG)).await;
    waits_behind(&ledger, &request("b@1", &["red"], LONG)).await;
    ledger.declare("red", 1).await.unwrap();
    waits_behind(&ledger, &request("b@1", &["red"], LONG)).await;
    granted(&ledger, &request("a@1", &["red"], LONG)).await;
    ledger.declare("red", 2).await.unwrap();
    waits_behind(&ledger, &request("c@1", &["red"], LONG)).await;
    granted(&ledger, &request("b@1", &["red"], LONG)).await;
}

async fn reconciling(place: Place) {
    let ledger = place.ledger();
    ledger.declare("red", 4).await.unwrap();
    ledger.declare("green", 1).await.unwrap();
    let runs = granted(&ledger, &request("runs@1", &["red"], LONG)).await;
    let forgotten = granted(&ledger, &request("forgotten@1", &["red"], LONG)).await;
    let elsewhere = granted(&ledger, &request("elsewhere@1", &["green"], LONG)).await;
    let asked_after = ledger.latest_fence().await.unwrap();
    let newer = granted(&ledger, &request("newer@1", &["red"], LONG)).await;
    let running = [key("runs@1"), key("of-nobody@1")];
    assert_eq!(ledger.reconcile("red", &running, asked_after).await, Ok(1));
    assert_eq!(ledger.reconcile("red", &running, asked_after).await, Ok(0));
    assert!(!ledger.renew(&forgotten, LONG).await.unwrap());
    for live in [runs, elsewhere, newer] {
        assert!(ledger.renew(&live, LONG).await.unwrap(), "{live:?}");
    }
    // What comes free by it goes to who waits.
    ledger.declare("red", 2).await.unwrap();
    waits_behind(&ledger, &request("waiter@1", &["red"], LONG)).await;
    assert_eq!(ledger.reconcile("red", &running, u64::MAX).await, Ok(1));
    granted(&ledger, &request("waiter@1", &["red"], LONG)).await;
}

async fn impossible(place: Place) {
    let ledger = place.ledger();
    let wide: Vec<String> =
        (0..=SlotLedger::REQUEST_EXECUTORS_MAX).map(|n| n.to_string()).collect();
    let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
    let given = wide.len();
    for (executors, refused) in [
        (vec![], LedgerRefused::NoExecutor),
        (wide, LedgerRefused::RequestTooWide { given }),
        (vec!["a\u{1}b"], LedgerRefused::BadName),
    ] {
        let answer = ledger.acquire(&request("a@1", &executors, LONG)).await;
        assert_eq!(answer, Err(LedgerError::Refused(refused)));
    }
    let given = SlotLedger::SLOTS_MAX + 1;
    let refused = LedgerRefused::TooManySlots { given };
    assert_eq!(ledger.declare("red", given).await, Err(LedgerError::Refused(refused)));
    assert!(!ledger.withdraw(&key("a@1")).await.unwrap());
    // Names that look like something else are names.
    for odd in ["http://[::1]:8083/a b?c=d", "{red}", "*", "é", "-1"] {
        ledger.declare(odd, 1).await.unwrap();
        let holder = request("odd@1", &[odd], LONG);
        let lease = granted(&ledger, &holder).await;
        assert_eq!((&*lease.executor, ledger.held(odd).await), (odd, Ok(1)));
        assert!(ledger.release(&lease).await.unwrap());
    }
}

async fn another_manager(place: Place) {
    place.ledger().declare("red", 1).await.unwrap();
    hand_to_and_fro(place.ledger(), place.another().await).await;
}

/// Each time the slot is released while nobody waits for a change. Were it missed, each time would take a poll's
/// second.
async fn a_change_between(place: Place) {
    const ROUNDS: u32 = 10;
    let (here, there) = (place.ledger(), place.another().await);
    here.declare("red", 1).await.unwrap();
    let mut waited = Duration::ZERO;
    for round in 0..ROUNDS {
        let lease = granted(&there, &request(&format!("a{round}@1"), &["red"], LONG)).await;
        let waiter = request(&format!("b{round}@1"), &["red"], LONG);
        waits_behind(&here, &waiter).await;
        assert!(there.release(&lease).await.unwrap());
        let began = tokio::time::Instant::now();
        here.changed().await;
        waited += began.elapsed();
        let next = turn(&here, &waiter).await;
        assert!(here.release(&next).await.unwrap());
    }
    assert!(waited < Duration::from_secs(u64::from(ROUNDS)) / 2, "waited for {waited:?}");
}
