use super::hub::WorkerHub;
use super::stats::{StatsKey, StatsValue};
use std::sync::Arc;

/// Hands progress to the manager's thread and statistics to their workers, for as long as both are there. A slow
/// manager stops it, and the buffer fills: that is the backpressure.
pub(super) async fn consume_forever(hub: Arc<WorkerHub>) {
    loop {
        let taken = hub.stats.take();
        if taken.is_empty() {
            hub.stats.changed.notified().await;
            continue;
        }
        let (mut progress, mut permits) = (Vec::new(), Vec::new());
        for (key, entry) in taken {
            permits.extend(entry.permits);
            match (key, entry.value) {
                (StatsKey::Execution(key), StatsValue::Progress(value)) => {
                    progress.push((key, value));
                }
                (StatsKey::Worker(name), StatsValue::Worker(stats)) => {
                    if let Some(worker) = hub.find(&name) {
                        worker.set_stats(stats);
                    }
                }
                (StatsKey::Debug(name), StatsValue::Debug(debug)) => {
                    if let Some(worker) = hub.find(&name) {
                        worker.set_debug(debug);
                    }
                }
                _ => {}
            }
        }
        if progress.is_empty() {
            // Statistics alone: the connections of this thread come first, and then what is left.
            hub.stats.consumed(permits);
            tokio::task::yield_now().await;
            continue;
        }
        if hub.outlet.progress.send(progress).await.is_err() {
            return;
        }
        hub.stats.consumed(permits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::manager::sessions::stats::TAKE_MAX;
    use crate::tasks::manager::sessions::{HubSettings, session_channels};
    use crate::tasks::session::WorkerStats;
    use tidegate::MessageClass;
    use tidegate::signal::{StatsOffer, Update};
    use tokio::time::{Duration, timeout};

    /// More statistics than the consumer takes at once, and nothing after them.
    #[tokio::test(start_paused = true)]
    async fn the_consumer_leaves_nothing_behind() {
        let settings = HubSettings { updates_max: 10_000, ..HubSettings::default() };
        let (outlet, _inlet) = session_channels();
        let hub = WorkerHub::new(settings, outlet).unwrap();
        let offer =
            StatsOffer { class: MessageClass::Data, update: Update::Progress, batched: true };
        let stats = (0..3 * TAKE_MAX).map(|nth| {
            let key = StatsKey::Worker(format!("w{nth}").into());
            (key, offer, StatsValue::Worker(WorkerStats::default()))
        });
        assert_eq!(hub.stats.record(stats, None), 0);
        let consuming = consume_forever(Arc::clone(&hub));
        assert!(timeout(Duration::from_secs(1), consuming).await.is_err(), "it goes on");
        assert_eq!(hub.stats.view().waiting, 0);
    }
}
