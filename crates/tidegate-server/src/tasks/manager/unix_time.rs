use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Unix time in milliseconds.
pub(super) fn now_ms() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
