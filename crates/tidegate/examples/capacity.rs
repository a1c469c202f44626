//! Capacity decisions alone, in virtual time: a dispatcher gives six tasks to two executors with one slot each.
//!
//! `cargo run -p tidegate --example capacity`

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;
use tidegate::MessagePriority::{self, High, Normal};
use tidegate::capacity::{
    Dispatcher, ExecutorAnswer, ExecutorId, ExecutorRuntimes, ExecutorSlots, Order, Placement,
    RuntimeId, Ticket,
};
use tidegate::task::{ExecutionKey, TaskId};

const PYTHON: RuntimeId = RuntimeId(0);

fn key(ticket: Ticket) -> Result<ExecutionKey, Box<dyn Error>> {
    Ok(TaskId::new(&format!("task-{}", ticket.0))?.attempt(1))
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let mut dispatcher = Dispatcher::new(Placement::Pull);
    // Each executor counts its own slots and has the last word on them.
    let mut executors: BTreeMap<_, _> =
        [0, 1].map(|id| (ExecutorId(id), ExecutorSlots::new(1, 0))).into();
    for id in executors.keys() {
        dispatcher.executor_up(*id, 1, ExecutorRuntimes::All);
    }
    let priorities: [MessagePriority; 6] = [Normal, Normal, Normal, Normal, High, High];
    for (number, priority) in (1..).zip(priorities) {
        dispatcher.submit(Ticket(number), priority, PYTHON);
    }

    let mut finished = Vec::new();
    for second in 0.. {
        let now = Duration::from_secs(second);
        let mut running = Vec::new();
        for order in dispatcher.orders(now, &mut || 0) {
            // With Placement::Pull the only order is to execute.
            let Order::Execute { ticket, executor } = order else { continue };
            let slots = executors.get_mut(&executor).ok_or("an unknown executor")?;
            let granted = slots.execute(&key(ticket)?, ticket.0, None, None, now)?;
            dispatcher.answered(ticket, ExecutorAnswer::Accepted, now);
            println!("{second} s: task {} on executor {}", ticket.0, executor.0);
            running.push((ticket, executor, granted.fence));
        }
        if running.is_empty() {
            break;
        }
        // A second later both tasks end. The fence proves that it is this grant that ends.
        for (ticket, executor, fence) in running {
            let slots = executors.get_mut(&executor).ok_or("an unknown executor")?;
            assert!(slots.finish(&key(ticket)?, fence));
            dispatcher.finished(ticket);
            finished.push(ticket.0);
        }
    }
    println!(
        "finished in the order {finished:?}: higher priority first, then first come, first served"
    );
    assert_eq!(finished, [5, 6, 1, 2, 3, 4]);
    Ok(())
}
