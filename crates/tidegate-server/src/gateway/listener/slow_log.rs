use std::time::{Duration, Instant};

/// The time between two lines about slow readers.
const PERIOD: Duration = Duration::from_secs(10);

/// The log of connections that were closed because their clients did not read: one line at once, then a summary
/// every 10 s for as long as there are more.
#[derive(Debug, Default)]
pub struct SlowReaderLog {
    unlogged: u64,
    next: Option<Instant>,
}

// === impl SlowReaderLog ===

impl SlowReaderLog {
    /// Records connections that were closed now.
    pub fn record(&mut self, closed: u64, now: Instant) {
        if let Some(closed) = self.due(closed, now) {
            tracing::warn!(
                closed,
                "closed connections whose clients do not read: responses exceed proxy.buffer_mib"
            );
        }
    }

    /// The connections of the line that is due now.
    fn due(&mut self, closed: u64, now: Instant) -> Option<u64> {
        self.unlogged += closed;
        if self.unlogged == 0 || self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + PERIOD);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_told_at_once_and_the_others_together() {
        let (mut log, start) = (SlowReaderLog::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(log.due(0, at(0)), None);
        assert_eq!(log.due(2, at(1)), Some(2));
        assert_eq!((log.due(1, at(2)), log.due(3, at(10))), (None, None));
        assert_eq!(log.due(0, at(11)), Some(4));
        assert_eq!(log.due(0, at(21)), None);
    }
}
