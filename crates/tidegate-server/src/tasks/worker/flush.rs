use super::data_link::Outgoing;
use super::shared::Shared;
use std::sync::Arc;
use std::time::Duration;
use tidegate::MessageClass;
use tidegate::signal::{Flush, FlushPolicy, Update};
use tokio::time::{MissedTickBehavior, interval, sleep_until};

/// Updates of a whole batch.
const BATCH_UPDATES: u64 = 64;
/// Bytes of a whole batch.
const BATCH_BYTES: u64 = 64 << 10;
/// Time that an update waits for others without backpressure: below what a person notices, and enough for the
/// bursts that a starting execution makes.
const LINGER: Duration = Duration::from_millis(5);
/// Interval of statistics.
const STATS_EVERY: Duration = Duration::from_secs(1);
/// Interval of metrics for debugging, in intervals of statistics.
const DEBUG_EVERY: u64 = 5;

/// Queues marked changes as the managers' highest signal allows, for ever.
pub(super) async fn flush_forever(shared: Arc<Shared>) {
    let policy =
        FlushPolicy { batch_updates: BATCH_UPDATES, batch_bytes: BATCH_BYTES, linger: LINGER };
    let mut last_sent = None;
    loop {
        let (signal, waiting, now) = (shared.signal(), shared.followed.waiting(), shared.now());
        let count = match policy.decide(&signal, &waiting, last_sent, now) {
            Flush::Idle => {
                shared.followed.changed.notified().await;
                continue;
            }
            Flush::WaitUntil(at) => {
                tokio::select! {
                    () = sleep_until(shared.instant(at)) => {}
                    // More changes, or another signal.
                    () = shared.followed.changed.notified() => {}
                }
                continue;
            }
            Flush::SendNow => u64::MAX,
            Flush::SendBatchOf(count) | Flush::Probe(count) => count,
        };
        let room = shared.queue_room();
        if room == 0 {
            // A full queue would give back an older change for each new one. The next send makes room.
            shared.followed.changed.notified().await;
            continue;
        }
        let count = count.min(room);
        last_sent = Some(now);
        for key in shared.followed.take(count, now) {
            shared.queue_update(key, false);
        }
        // A flush at each turn of a busy executor must not keep the thread from it.
        tokio::task::yield_now().await;
    }
}

/// Queues statistics and metrics of the worker, for ever.
pub(super) async fn report_forever(shared: Arc<Shared>) {
    let mut ticks = interval(STATS_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for tick in 0_u64.. {
        ticks.tick().await;
        if shared.connected.borrow().manager.is_none() {
            continue;
        }
        shared.queue(MessageClass::Data, Outgoing::Stats);
        if tick.is_multiple_of(DEBUG_EVERY) {
            match shared.signal().may_drop(MessageClass::Telemetry, Update::Progress) {
                true => shared.followed.count_dropped(MessageClass::Telemetry),
                false => shared.queue(MessageClass::Telemetry, Outgoing::Debug),
            }
        }
    }
}
