use super::state::ExecutorState;
use crate::tasks::execution::StopReason;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::sleep_until;

/// Ends expired reservations and stops executions with an expired lease, until the executor is gone.
pub(super) async fn expire_forever(state: Weak<ExecutorState>) {
    loop {
        let Some(strong) = state.upgrade() else { return };
        let moved = Arc::clone(&strong.expiry_moved);
        let next = expire(&strong).map(|at| strong.instant(at));
        drop(strong);
        match next {
            None => moved.notified().await,
            Some(at) => tokio::select! {
                () = sleep_until(at) => {}
                () = moved.notified() => {}
            },
        }
    }
}

/// Ends everything that has expired, and returns the next expiry.
fn expire(state: &ExecutorState) -> Option<Duration> {
    let mut table = state.lock();
    let now = state.now();
    table.expire_reservations(now);
    let expired = table.slots.expire(now);
    table.counts.leases_expired += expired.len() as u64;
    let stopped: Vec<_> =
        expired.iter().filter_map(|(key, _)| table.known.get(key)).cloned().collect();
    let next = table.slots.next_expiry();
    table.timer_at = next;
    drop(table);
    for execution in stopped {
        tracing::warn!(id = %execution.key, "lease expired: execution stopped");
        execution.stop(StopReason::LeaseExpired);
    }
    next
}
