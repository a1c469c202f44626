//! Orders of each placement with a few executors and attempts.

use std::time::Duration;
use tidegate_core::admission::MessagePriority::{High, Normal};
use tidegate_core::capacity::{
    Dispatcher, ExecutorAnswer, ExecutorId, ExecutorRuntimes, LeaseAnswer, Order, Placement,
    QueuePosition, RuntimeId, Ticket,
};

const NOW: Duration = Duration::ZERO;
const PYTHON: RuntimeId = RuntimeId(0);
const SH: RuntimeId = RuntimeId(1);

fn dispatcher(placement: Placement, executors: u32, tickets: u64) -> Dispatcher {
    let mut dispatcher = Dispatcher::new(placement);
    for id in 0..executors {
        dispatcher.executor_up(ExecutorId(id), 1, ExecutorRuntimes::All);
    }
    for ticket in 0..tickets {
        dispatcher.submit(Ticket(ticket), Normal, PYTHON);
    }
    dispatcher
}

fn orders(dispatcher: &mut Dispatcher, now: Duration) -> Vec<Order> {
    let mut state = 7_u64;
    dispatcher.orders(now, &mut || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 33
    })
}

fn executed(order: &Order) -> (u64, u32) {
    match order {
        Order::Execute { ticket, executor } => (ticket.0, executor.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pull_sends_one_to_each_free_slot_and_the_rest_waits() {
    let mut it = dispatcher(Placement::Pull, 3, 5);
    let sent: Vec<_> = orders(&mut it, NOW).iter().map(executed).collect();
    assert_eq!(sent, [(0, 0), (1, 1), (2, 2)]);
    assert_eq!(it.ahead_of(Ticket(4)), Some(1));
    assert!(orders(&mut it, NOW).is_empty());
    it.answered(Ticket(1), ExecutorAnswer::Accepted, NOW);
    it.finished(Ticket(1));
    assert_eq!(orders(&mut it, NOW).iter().map(executed).collect::<Vec<_>>(), [(3, 1)]);
}

#[test]
fn a_refused_attempt_keeps_its_place_and_the_executor_is_left_alone() {
    let mut it = dispatcher(Placement::Pull, 1, 2);
    orders(&mut it, NOW);
    let retry_after = Duration::from_secs(2);
    it.answered(Ticket(0), ExecutorAnswer::Full { retry_after }, NOW);
    it.submit(Ticket(9), High, PYTHON);
    assert_eq!(it.ahead_of(Ticket(0)), Some(1), "behind High, before the others");
    assert!(orders(&mut it, Duration::from_secs(1)).is_empty());
    assert_eq!(it.next_wake(NOW), Some(retry_after));
    assert_eq!(executed(&orders(&mut it, retry_after)[0]).0, 9);
}

#[test]
fn a_report_that_is_out_of_date_blocks_nobody() {
    let mut it = dispatcher(Placement::Pull, 1, 1);
    orders(&mut it, NOW);
    let asked = it.changes(ExecutorId(0));
    it.answered(Ticket(0), ExecutorAnswer::Accepted, NOW);
    it.finished(Ticket(0));
    it.reported(ExecutorId(0), 1, asked);
    it.submit(Ticket(1), Normal, PYTHON);
    assert_eq!(orders(&mut it, NOW).len(), 1);
    it.answered(Ticket(1), ExecutorAnswer::Accepted, NOW);
    it.finished(Ticket(1));
    it.reported(ExecutorId(0), 1, it.changes(ExecutorId(0)));
    it.submit(Ticket(2), Normal, PYTHON);
    assert!(orders(&mut it, NOW).is_empty(), "somebody else has the slot");
}

#[test]
fn what_nobody_can_run_holds_nobody_up() {
    for placement in Placement::ALL {
        let mut it = Dispatcher::new(placement);
        it.executor_up(ExecutorId(0), 1, ExecutorRuntimes::Only(vec![SH]));
        it.submit(Ticket(0), High, PYTHON);
        it.submit(Ticket(1), Normal, SH);
        let found = orders(&mut it, NOW);
        let (Order::Execute { ticket, .. }
        | Order::Reserve { ticket, .. }
        | Order::Lease { ticket, .. }) = found[0].clone()
        else {
            panic!("{found:?}");
        };
        assert_eq!((found.len(), ticket), (1, Ticket(1)), "{placement}");
    }
}

#[test]
fn queues_are_left_when_their_executor_dies_and_robbed_when_another_idles() {
    let mut it = dispatcher(Placement::Queue, 2, 20);
    let first = orders(&mut it, NOW);
    assert_eq!(first.len(), 2, "one for each slot");
    let mut served = 2;
    // Only one of the two ever frees its slot: it serves its own line, and then the other's.
    let (mut running, at) = executed(&first[0]);
    loop {
        it.answered(Ticket(running), ExecutorAnswer::Accepted, NOW);
        it.finished(Ticket(running));
        let next = orders(&mut it, NOW);
        let Some(order) = next.first() else { break };
        let (ticket, executor) = executed(order);
        assert_eq!((next.len(), executor), (1, at));
        running = ticket;
        served += 1;
    }
    assert_eq!(served, 20);
}

#[test]
fn leases_are_asked_in_order_and_given_back() {
    let mut it = dispatcher(Placement::Semaphore, 2, 9);
    let asked = orders(&mut it, NOW);
    assert_eq!(asked.len(), 3, "the free slots, and one who waits in the ledger's line");
    let to = ExecutorId(1);
    let next = it.leased(Ticket(0), LeaseAnswer::Granted(to), NOW).unwrap();
    assert_eq!(executed(&next), (0, 1));
    assert_eq!(it.leased(Ticket(1), LeaseAnswer::Waiting, NOW), None);
    assert_eq!(it.leased(Ticket(2), LeaseAnswer::Waiting, NOW), None);
    let again = it.ledger_changed(NOW);
    assert!(matches!(&again[..], [Order::Lease { ticket: Ticket(1), .. }, _]), "{again:?}");
    it.answered(Ticket(0), ExecutorAnswer::Accepted, NOW);
    assert_eq!(it.finished(Ticket(0)), Some(Order::Unlease { ticket: Ticket(0) }));
    assert_eq!(it.withdraw(Ticket(1)), Some(Order::Unlease { ticket: Ticket(1) }));
    let late = it.leased(Ticket(1), LeaseAnswer::Granted(to), NOW);
    assert_eq!(late, Some(Order::Unlease { ticket: Ticket(1) }), "given too late");
}

#[test]
fn reservations_come_before_the_attempt() {
    let mut it = dispatcher(Placement::Reserve, 1, 2);
    let executor = ExecutorId(0);
    assert_eq!(orders(&mut it, NOW), [Order::Reserve { ticket: Ticket(0), executor }]);
    let next = it.reserved(Ticket(0), ExecutorAnswer::Accepted, NOW);
    assert_eq!(next, Some(Order::Execute { ticket: Ticket(0), executor }));
    assert_eq!(it.answered(Ticket(0), ExecutorAnswer::Gone, NOW), None);
    assert_eq!(orders(&mut it, NOW), [Order::Reserve { ticket: Ticket(0), executor }]);
}

#[test]
fn the_second_of_two_answers_of_the_ledger_takes_no_slot_away() {
    let mut it = dispatcher(Placement::Semaphore, 1, 1);
    orders(&mut it, NOW);
    let granted = LeaseAnswer::Granted(ExecutorId(0));
    assert!(matches!(it.leased(Ticket(0), granted, NOW), Some(Order::Execute { .. })));
    assert_eq!(it.leased(Ticket(0), granted, NOW), None);
    it.answered(Ticket(0), ExecutorAnswer::Accepted, NOW);
    assert_eq!(it.leased(Ticket(0), LeaseAnswer::Waiting, NOW), None);
    assert_eq!(it.finished(Ticket(0)), Some(Order::Unlease { ticket: Ticket(0) }));
}

#[test]
fn who_may_have_a_slot_that_it_was_not_told_of_asks_again_before_others() {
    let mut it = dispatcher(Placement::Semaphore, 1, 2);
    orders(&mut it, NOW);
    it.leased(Ticket(0), LeaseAnswer::Unavailable, NOW);
    it.leased(Ticket(1), LeaseAnswer::Unavailable, NOW);
    it.submit(Ticket(9), High, PYTHON);
    assert!(orders(&mut it, NOW).is_empty(), "the ledger is left alone");
    let wake = it.next_wake(NOW).unwrap();
    let asked = orders(&mut it, wake);
    let executors = vec![ExecutorId(0)];
    let lease = |ticket| Order::Lease { ticket: Ticket(ticket), executors: executors.clone() };
    assert_eq!(asked, [lease(0), lease(1)]);
}

#[test]
fn a_line_for_the_executors_of_one_runtime_holds_up_no_other() {
    let mut it = Dispatcher::new(Placement::Semaphore);
    it.executor_up(ExecutorId(0), 1, ExecutorRuntimes::Only(vec![PYTHON]));
    it.submit(Ticket(0), Normal, PYTHON);
    it.submit(Ticket(1), Normal, PYTHON);
    for order in orders(&mut it, NOW) {
        let Order::Lease { ticket, .. } = order else { panic!("{order:?}") };
        it.leased(ticket, LeaseAnswer::Waiting, NOW);
    }
    it.executor_up(ExecutorId(1), 1, ExecutorRuntimes::Only(vec![SH]));
    it.submit(Ticket(2), Normal, SH);
    let executors = vec![ExecutorId(1)];
    assert_eq!(orders(&mut it, NOW), [Order::Lease { ticket: Ticket(2), executors }]);
}

#[test]
fn an_optimistic_manager_does_not_send_its_whole_line_to_who_is_full_of_its_own() {
    let mut it = dispatcher(Placement::Optimistic, 2, 100);
    let sent: Vec<_> = orders(&mut it, NOW).iter().map(executed).collect();
    assert_eq!(sent.len(), 2);
    it.answered(Ticket(0), ExecutorAnswer::Accepted, NOW);
    it.finished(Ticket(0));
    assert_eq!(orders(&mut it, NOW).len(), 1);
}

#[test]
fn what_runs_at_an_executor_that_is_not_heard_of_yet_counts_when_it_comes() {
    let mut it = dispatcher(Placement::Pull, 0, 1);
    let place = QueuePosition { priority: Normal, seq: 0 };
    it.resume(Ticket(7), ExecutorId(0), place, PYTHON);
    it.executor_up(ExecutorId(0), 1, ExecutorRuntimes::All);
    assert!(orders(&mut it, NOW).is_empty(), "its only slot is taken");
    it.finished(Ticket(7));
    assert_eq!(orders(&mut it, NOW).iter().map(executed).collect::<Vec<_>>(), [(0, 0)]);
}

#[test]
fn a_more_urgent_attempt_is_taken_from_another_executors_line() {
    let mut it = dispatcher(Placement::Queue, 2, 20);
    let (running, at) = executed(&orders(&mut it, NOW)[0]);
    it.submit(Ticket(98), High, PYTHON);
    it.submit(Ticket(99), High, PYTHON);
    let mut running = running;
    for urgent in [98, 99] {
        it.answered(Ticket(running), ExecutorAnswer::Accepted, NOW);
        it.finished(Ticket(running));
        let next: Vec<_> = orders(&mut it, NOW).iter().map(executed).collect();
        assert_eq!(next, [(urgent, at)], "whoever's line it is in");
        running = urgent;
    }
}

#[test]
fn a_change_of_the_ledger_while_it_is_asked_is_not_missed() {
    let mut it = dispatcher(Placement::Semaphore, 1, 1);
    let asked = orders(&mut it, NOW);
    assert!(it.ledger_changed(NOW).is_empty(), "its answer is on its way");
    let again = it.leased(Ticket(0), LeaseAnswer::Waiting, NOW);
    assert_eq!(again.as_ref(), asked.first(), "it may have been said before the slot was free");
    assert_eq!(it.leased(Ticket(0), LeaseAnswer::Waiting, NOW), None, "nothing has changed since");
}
