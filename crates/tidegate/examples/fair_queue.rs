//! Two clients and three priorities in front of one slot.
//!
//! `cargo run -p tidegate --example fair_queue`

use std::error::Error;
use std::time::Duration;
use tidegate::MessagePriority::{self, High, Low, Normal};
use tidegate::queue::{Arrival, FairQueue, FlowId, Next, Offer, QueueBounds};

const CLIENTS: [&str; 2] = ["acme", "beta"];

type Request = (MessagePriority, &'static str, usize);

fn arrival(priority: MessagePriority, client: usize, number: usize) -> Arrival<Request> {
    let flow = FlowId(client as u64);
    Arrival { flow, ..Arrival::new(priority, (priority, CLIENTS[client], number)) }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let mut queue = FairQueue::new(QueueBounds { count: 8, ..QueueBounds::default() });
    let ms = Duration::from_millis;

    // One request arrives each millisecond. The first client floods the queue, the least urgent first.
    let flood = [(Low, 0), (Low, 0), (Normal, 0), (Normal, 0), (Normal, 0), (High, 0)];
    let others = [(Normal, 1), (Normal, 1), (High, 1)];
    for (number, (priority, client)) in flood.into_iter().chain(others).enumerate() {
        let pushed = queue.push(arrival(priority, client, number), ms(number as u64))?;
        for (priority, client, number) in pushed.displaced {
            println!("request {number} ({priority}, {client}) gave way: the queue was full");
        }
    }
    match queue.push(arrival(Low, 1, 9), ms(9)) {
        Ok(_) => println!("request 9 waits"),
        Err(full) => println!("request 9 (low, beta) is refused: {full}"),
    }

    // The slot serves one request every 10 ms.
    let mut now = ms(10);
    let mut served = Vec::new();
    while let Some(Next::Served { item, waited, .. }) = queue.next(now, |_| Offer::Taken(())) {
        let (priority, client, number) = item;
        println!("{now:>5?}: request {number} ({priority}, {client}) after {waited:?}");
        served.push(number);
        now += ms(10);
    }
    // High first; within a priority the clients take turns, although all of the flood came before.
    assert_eq!(served, [5, 8, 2, 6, 3, 7, 4, 0]);
    Ok(())
}
