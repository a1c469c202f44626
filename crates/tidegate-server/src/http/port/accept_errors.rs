use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Pause after a failed accept: without descriptors or memory, accepting again at once would spin.
const PAUSE: Duration = Duration::from_millis(100);

/// The same while the process has no descriptors: until a connection that had to make room is closed.
const ROOM_PAUSE: Duration = Duration::from_millis(5);

/// Time between two log lines of a port: an outage of descriptors fails ten accepts a second at each.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Failed accepts of one port, logged at most every 10 s with their number.
#[derive(Debug)]
pub struct AcceptErrors {
    port: &'static str,
    logged_at: Option<Instant>,
    /// Failures since then.
    unlogged: u64,
}

// === impl AcceptErrors ===

impl AcceptErrors {
    /// None yet, of the port with this name.
    pub fn new(port: &'static str) -> Self {
        Self { port, logged_at: None, unlogged: 0 }
    }

    /// Counts a failure, logs it if the last line is old enough, and waits before the next accept.
    pub async fn pause_after(&mut self, error: &io::Error) {
        self.note(error);
        sleep(PAUSE).await;
    }

    /// The same after a connection was asked to make room for the next one.
    pub async fn pause_for_room(&mut self, error: &io::Error) {
        self.note(error);
        sleep(ROOM_PAUSE).await;
    }

    /// Counts a failure, and logs it if the last line is old enough.
    pub fn note(&mut self, error: &io::Error) {
        if let Some(failed) = self.count(Instant::now()) {
            let port = self.port;
            tracing::warn!(%error, port, failed, "could not accept connections");
        }
    }

    /// Counts a failure. Returns the number of failures since the last line when another is due.
    fn count(&mut self, now: Instant) -> Option<u64> {
        self.unlogged += 1;
        if self.logged_at.is_some_and(|at| now < at + LOG_EVERY) {
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_of_failures_is_logged_six_times() {
        let mut errors = AcceptErrors::new("data");
        let start = Instant::now();
        let lines: Vec<u64> =
            (0..600).filter_map(|step| errors.count(start + PAUSE * step)).collect();
        assert_eq!(lines, [1, 100, 100, 100, 100, 100]);
        let later = start + Duration::from_secs(3_600);
        assert_eq!(errors.count(later), Some(100), "none is forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn accepting_does_not_spin() {
        let (mut errors, start) = (AcceptErrors::new("data"), Instant::now());
        for _ in 0..10 {
            errors.pause_after(&io::Error::from(io::ErrorKind::OutOfMemory)).await;
        }
        assert_eq!(start.elapsed(), PAUSE * 10);
    }
}
