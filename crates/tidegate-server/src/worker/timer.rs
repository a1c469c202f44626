use super::executor::Shared;
use super::work::StopWhy;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::sleep_until;

/// Ends reservations and stops executions when their time has run out, until the executor is gone.
pub(super) async fn keep_time(shared: Weak<Shared>) {
    loop {
        let Some(strong) = shared.upgrade() else { return };
        let earlier = Arc::clone(&strong.earlier);
        let next = expire(&strong).map(|at| strong.instant(at));
        drop(strong);
        match next {
            None => earlier.notified().await,
            Some(at) => tokio::select! {
                () = sleep_until(at) => {}
                () = earlier.notified() => {}
            },
        }
    }
}

/// Ends what has run out, and says when the next will have.
fn expire(shared: &Shared) -> Option<Duration> {
    let mut table = shared.lock();
    let now = shared.now();
    table.expire_reservations(now);
    let unasked = table.slots.expire(now);
    table.counts.leases_expired += unasked.len() as u64;
    let stopped: Vec<_> =
        unasked.iter().filter_map(|(key, _)| table.known.get(key)).cloned().collect();
    let next = table.slots.next_expiry();
    table.timer_at = next;
    drop(table);
    for execution in stopped {
        tracing::warn!(id = %execution.key, "nobody asks for an execution any more: it is stopped");
        execution.stop(StopWhy::LeaseExpired);
    }
    next
}
