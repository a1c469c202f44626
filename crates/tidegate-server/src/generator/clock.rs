use std::time::{Duration, Instant};

/// Time from the start of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Instant,
}

// === impl Clock ===

impl Clock {
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    pub fn started_at(self) -> Instant {
        self.start
    }

    pub fn now(self) -> Duration {
        self.start.elapsed()
    }

    /// The instant of a time of the run; none when it is too far away to be told.
    pub fn instant(self, at: Duration) -> Option<Instant> {
        self.start.checked_add(at)
    }
}
