use std::time::{Duration, Instant};

/// Clock of a run, from its start.
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

    /// Instant of a time of the run; `None` on overflow.
    pub fn instant(self, at: Duration) -> Option<Instant> {
        self.start.checked_add(at)
    }
}
