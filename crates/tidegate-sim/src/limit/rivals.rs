//! Limit laws of others in our own words, with their published defaults, to compare with.

/// Most that a rival's limit may be.
const MAX: f64 = 5_000.0;
/// First limit of a rival.
const START: f64 = 20.0;

/// A queue estimate for each sample: limit × (1 − minimum latency / latency).
#[derive(Debug)]
pub(super) struct Vegas {
    limit: f64,
    minimum_s: f64,
    samples: u64,
}

/// The ratio of a long-term latency to that of the last second.
#[derive(Debug)]
pub(super) struct Gradient2 {
    limit: f64,
    long_s: f64,
    updates: u32,
    sum_s: f64,
    samples: u32,
    most_in_flight: u32,
    next_s: f64,
}

/// One more for each limit's worth of fast responses, a tenth less for a slow one.
#[derive(Debug)]
pub(super) struct Aimd {
    limit: f64,
    threshold_s: f64,
    lowered_at_s: f64,
}

fn whole(limit: f64) -> u32 {
    limit.clamp(1.0, MAX) as u32
}

// === impl Vegas ===

impl Default for Vegas {
    fn default() -> Self {
        Self { limit: START, minimum_s: 0.0, samples: 0 }
    }
}

impl Vegas {
    pub(super) fn limit(&self) -> u32 {
        whole(self.limit)
    }

    pub(super) fn sample(&mut self, latency_s: f64, in_flight: u32, is_ok: bool) {
        self.samples += 1;
        // The minimum is measured anew now and then.
        if self.samples as f64 >= 22.5 * self.limit {
            self.samples = 0;
            self.minimum_s = latency_s;
            return;
        }
        if self.minimum_s == 0.0 || latency_s < self.minimum_s {
            self.minimum_s = latency_s;
            return;
        }
        let queue = (self.limit * (1.0 - self.minimum_s / latency_s)).ceil();
        let unit = decimal_digits(self.limit);
        if !is_ok {
            self.limit -= unit;
        } else if 2.0 * f64::from(in_flight) < self.limit {
            return;
        } else if queue <= unit {
            self.limit += 6.0 * unit;
        } else if queue < 3.0 * unit {
            self.limit += unit;
        } else if queue > 6.0 * unit {
            self.limit -= unit;
        }
        self.limit = self.limit.clamp(1.0, MAX);
    }
}

/// The decimal logarithm, rounded down, at least 1.
fn decimal_digits(limit: f64) -> f64 {
    let mut digits = 0.0;
    let mut rest = limit;
    while rest >= 10.0 {
        rest /= 10.0;
        digits += 1.0;
    }
    f64::max(digits, 1.0)
}

// === impl Gradient2 ===

impl Default for Gradient2 {
    fn default() -> Self {
        Self {
            limit: START,
            long_s: 0.0,
            updates: 0,
            sum_s: 0.0,
            samples: 0,
            most_in_flight: 0,
            next_s: 0.0,
        }
    }
}

impl Gradient2 {
    pub(super) fn limit(&self) -> u32 {
        whole(self.limit)
    }

    pub(super) fn sample(&mut self, now_s: f64, latency_s: f64, in_flight: u32) {
        self.sum_s += latency_s;
        self.samples += 1;
        self.most_in_flight = self.most_in_flight.max(in_flight);
        if now_s < self.next_s || self.samples < 10 {
            return;
        }
        let (short_s, in_flight) = (self.sum_s / f64::from(self.samples), self.most_in_flight);
        (self.sum_s, self.samples, self.most_in_flight) = (0.0, 0, 0);
        self.next_s = now_s + 1.0;
        self.update(short_s, in_flight);
    }

    fn update(&mut self, short_s: f64, in_flight: u32) {
        // A mean of the first ten, then an average over 600.
        self.updates = (self.updates + 1).min(600);
        let weight = if self.updates <= 10 { 1.0 / f64::from(self.updates) } else { 2.0 / 601.0 };
        self.long_s += weight * (short_s - self.long_s);
        if self.long_s > 2.0 * short_s {
            self.long_s *= 0.95;
        }
        if f64::from(in_flight) < self.limit / 2.0 {
            return;
        }
        let gradient = (1.5 * self.long_s / short_s).clamp(0.5, 1.0);
        self.limit = (0.8 * self.limit + 0.2 * (self.limit * gradient + 4.0)).clamp(1.0, MAX);
    }
}

// === impl Aimd ===

impl Aimd {
    pub(super) fn new(threshold_s: f64) -> Self {
        Self { limit: START, threshold_s, lowered_at_s: 0.0 }
    }

    pub(super) fn limit(&self) -> u32 {
        whole(self.limit)
    }

    pub(super) fn sample(&mut self, now_s: f64, latency_s: f64, in_flight: u32, is_ok: bool) {
        if !is_ok || latency_s > self.threshold_s {
            // Once for each round trip.
            if now_s - latency_s > self.lowered_at_s {
                self.limit *= 0.9;
                self.lowered_at_s = now_s;
            }
        } else if 2.0 * f64::from(in_flight) >= self.limit {
            self.limit += 1.0 / self.limit;
        }
        self.limit = self.limit.clamp(1.0, MAX);
    }
}
