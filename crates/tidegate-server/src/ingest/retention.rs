use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::store::{AnyStore, Store as _};
use tokio::time::sleep;

/// Seconds of a day.
const DAY_S: u64 = 86_400;

/// Between two looks for what is too old.
const EVERY: Duration = Duration::from_secs(600);

/// Deletes what is older than it may be, for ever.
pub async fn retain_forever(store: &AnyStore, retention: Option<Duration>) {
    let Some(retention) = retention else { return std::future::pending().await };
    let mut done = None;
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let before = now.saturating_sub(retention);
        // Stores delete whole days: nothing is to be found before the next one.
        let day = before.as_secs() / DAY_S;
        if done != Some(day) {
            let before_ns = i64::try_from(before.as_nanos()).unwrap_or(i64::MAX);
            match store.retain(before_ns).await {
                Ok(deleted) => {
                    done = Some(day);
                    tracing::info!(
                        deleted,
                        "what is older than ingest.retention_hours was deleted"
                    );
                }
                Err(error) => tracing::warn!(%error, "what is too old could not be deleted"),
            }
        }
        sleep(EVERY).await;
    }
}
