//! Turns of flows at one slot, where what arrives during a service waits for its end.

use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::queue::{Arrival, FairQueue, FlowId, Next, Offer, QueueBounds};

const NOW: Duration = Duration::from_secs(1);

fn queue() -> FairQueue<u64> {
    FairQueue::new(QueueBounds { count: 1_000, ..QueueBounds::default() })
}

fn push(queue: &mut FairQueue<u64>, flow: u64) {
    let arrival = Arrival { flow: FlowId(flow), ..Arrival::new(MessagePriority::Normal, flow) };
    assert!(queue.push(arrival, NOW).is_ok(), "the queue has room");
}

/// Gives the slot to the next flow. A look without a slot follows, as in a gateway, and must change nothing.
fn serve(queue: &mut FairQueue<u64>) -> u64 {
    let Some(Next::Served { item, .. }) = queue.next(NOW, |_| Offer::Taken(())) else {
        panic!("somebody waits");
    };
    assert!(queue.next(NOW, |_| Offer::<()>::NoSlot).is_none());
    item
}

#[test]
fn a_flow_with_one_request_at_a_time_gets_as_much_as_each_with_a_backlog() {
    const ONE: u64 = 9;
    for backlogs in [1, 3] {
        let mut queue = queue();
        (0..100).for_each(|_| (1..=backlogs).for_each(|flow| push(&mut queue, flow)));
        push(&mut queue, ONE);
        let (mut served, mut is_away) = (0, false);
        for _ in 0..80 {
            let is_back = is_away;
            is_away = serve(&mut queue) == ONE;
            served += u64::from(is_away);
            // Its next request comes when the last one has ended, and the slot then has another.
            if is_back {
                push(&mut queue, ONE);
            }
        }
        let fair = 80 / (backlogs + 1);
        assert!(served.abs_diff(fair) <= 2, "{served} of 80 beside {backlogs}");
    }
}

#[test]
fn ever_new_flows_do_not_keep_a_backlog_from_its_turns() {
    const BACKLOG: u64 = 1;
    let mut queue = queue();
    (0..100).for_each(|_| push(&mut queue, BACKLOG));
    let mut order = Vec::new();
    for slot in 0..60 {
        order.push(serve(&mut queue));
        // Twice as many as are served.
        push(&mut queue, 10 + 2 * slot);
        push(&mut queue, 11 + 2 * slot);
    }
    let turns = |order: &[u64]| order.iter().filter(|flow| **flow == BACKLOG).count();
    assert!(turns(&order[..20]) >= 3, "{order:?}");
    assert!(turns(&order[20..]) >= 1, "{order:?}");
}
