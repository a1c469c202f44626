/// Breaker of an upstream that does not respond: it is left alone, and tried by one probe at a time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    silences: u32,
    last_response_s: f64,
    open: Option<Probes>,
}

#[derive(Clone, Copy, Debug)]
struct Probes {
    next_s: f64,
    interval_s: f64,
}

/// Requests without a response, one after another, that open the breaker: with one response in two lost at
/// random, eight in a row are one chance in 256.
const SILENCES: u32 = 8;

/// First interval between probes; each further one is twice as long.
const INTERVAL_S: f64 = 0.1;
/// Longest interval: an upstream that is back is found within 2 s.
const INTERVAL_MAX_S: f64 = 1.6;

// === impl Breaker ===

impl Breaker {
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns `true` if a probe is due.
    pub(super) fn allows_probe(&self, now_s: f64) -> bool {
        self.open.is_some_and(|probes| now_s >= probes.next_s)
    }

    pub(super) fn on_start(&mut self, now_s: f64) {
        if let Some(probes) = &mut self.open {
            probes.next_s = now_s + probes.interval_s;
            probes.interval_s = (2.0 * probes.interval_s).min(INTERVAL_MAX_S);
        }
    }

    /// Returns `true` if no response has come since.
    pub(super) fn is_silent_since(&self, since_s: f64) -> bool {
        self.last_response_s <= since_s
    }

    /// Counts a request without a response; returns `true` if that opens the breaker.
    pub(super) fn on_silence(&mut self, now_s: f64) -> bool {
        self.silences = self.silences.saturating_add(1);
        let opens = self.silences >= SILENCES && self.open.is_none();
        if opens {
            self.open = Some(Probes { next_s: now_s + INTERVAL_S, interval_s: INTERVAL_S });
        }
        opens
    }

    /// Counts a response of any kind; returns `true` if that closes the breaker.
    pub(super) fn on_response(&mut self, now_s: f64) -> bool {
        self.silences = 0;
        self.last_response_s = now_s;
        self.open.take().is_some()
    }
}
