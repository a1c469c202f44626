use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::store::{AnyStore, Store as _};
use tokio::time::sleep;

/// Between two looks for what is too old. Deleting often deletes little at once.
const EVERY: Duration = Duration::from_secs(600);

/// Deletes what is older than it may be, for ever.
pub async fn retain_forever(store: &AnyStore, retention: Option<Duration>) {
    let Some(retention) = retention else { return std::future::pending().await };
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let before = i64::try_from(now.saturating_sub(retention).as_nanos()).unwrap_or(i64::MAX);
        match store.retain(before).await {
            Ok(0) => {}
            Ok(deleted) => tracing::info!(deleted, "records that are too old were deleted"),
            Err(error) => tracing::warn!(%error, "records that are too old could not be deleted"),
        }
        sleep(EVERY).await;
    }
}
