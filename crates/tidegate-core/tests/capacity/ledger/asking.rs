use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::capacity::{Acquired, LedgerRefused, SlotLease, SlotRequest};
use tidegate_core::task::ExecutionKey;

pub fn key(holder: u8) -> ExecutionKey {
    // Two attempts at each task: they are different holders.
    format!("task-{}@{}", holder / 2, holder % 2 + 1).parse().unwrap()
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn request(
    holder: u8,
    executors: &[&str],
    priority: MessagePriority,
    ttl_ms: u64,
) -> SlotRequest {
    let executors = executors.iter().map(|name| Box::from(*name)).collect();
    SlotRequest { holder: key(holder), priority, executors, ttl: ms(ttl_ms) }
}

pub fn granted(acquired: Result<Acquired, LedgerRefused>) -> SlotLease {
    match acquired.unwrap() {
        Acquired::Granted(lease) => lease,
        Acquired::Waiting { ahead } => panic!("it waits behind {ahead}"),
    }
}

pub fn waits_behind(acquired: Result<Acquired, LedgerRefused>) -> u64 {
    match acquired.unwrap() {
        Acquired::Waiting { ahead } => ahead,
        Acquired::Granted(lease) => panic!("it was granted {lease:?}"),
    }
}
