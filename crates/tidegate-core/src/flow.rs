//! How fast things come and go, for whoever has to say when to come back.

/// How long estimates remember. Long enough to smooth a burst of completions, short enough to follow a
/// change of load within the few seconds that a client waits.
const MEMORY_S: f64 = 2.0;

/// How fast places come free, as the time between two of them. Intervals and not rates,
/// because an interval is right for one completion in ten seconds as for ten thousand in one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Freed {
    total: u64,
    last_at_s: f64,
    interval_s: Option<f64>,
    /// Nothing was in flight and nothing ended when last looked at.
    idle: bool,
}

/// Events a second, exponentially smoothed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    total: u64,
    per_s: f64,
}

// === impl Freed ===

impl Freed {
    /// Nothing is known yet but the total so far.
    pub fn starting(now_s: f64, total: u64) -> Self {
        Self { total, last_at_s: now_s, ..Self::default() }
    }

    /// Takes in the total that has come free by now, and what is still held.
    pub fn observe(&mut self, now_s: f64, total: u64, in_flight: u64) {
        let count = total.saturating_sub(self.total);
        self.idle = count == 0 && in_flight == 0;
        if self.idle {
            self.last_at_s = now_s;
        }
        if count == 0 {
            return;
        }
        let gap_s = now_s - self.last_at_s;
        let sample_s = gap_s / count as f64;
        let interval_s = match self.interval_s {
            Some(old) => old + weight(gap_s) * (sample_s - old),
            None => sample_s,
        };
        *self = Self { total, last_at_s: now_s, interval_s: Some(interval_s), idle: false };
    }

    /// Silence counts: nothing for longer than the usual interval means that the interval has grown.
    pub fn per_s(&self, now_s: f64) -> f64 {
        let silence_s = now_s - self.last_at_s;
        self.interval_s.map_or(0.0, |interval_s| 1.0 / interval_s.max(silence_s).max(1e-9))
    }

    /// When something last came free, or could not because nothing was held.
    pub fn last_at_s(&self) -> f64 {
        self.last_at_s
    }

    /// Whether nothing was held and nothing ended when last looked at.
    pub fn is_idle(&self) -> bool {
        self.idle
    }
}

// === impl Rate ===

impl Rate {
    /// Takes in the total so far, this long after the last look.
    pub fn observe(&mut self, elapsed_s: f64, total: u64, first: bool) {
        let count = total.saturating_sub(self.total);
        self.total = total;
        if !first {
            self.per_s += weight(elapsed_s) * (count as f64 / elapsed_s - self.per_s);
        }
    }

    /// Events a second.
    pub fn per_s(&self) -> f64 {
        self.per_s
    }
}

/// The weight of a sample that covers this stretch of time.
fn weight(stretch_s: f64) -> f64 {
    1.0 - (-stretch_s / MEMORY_S).exp()
}
