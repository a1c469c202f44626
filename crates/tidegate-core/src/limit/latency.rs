use super::logarithm::{exp, ln};

/// Latencies of a round, by the mean and the spread of their logarithms: the geometric mean is the typical
/// latency.
///
/// One slow request among a thousand hardly moves it, and a queue in the upstream moves it more than it moves
/// the arithmetic mean: a wait that is added to every request multiplies the short ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatencySample {
    count: f64,
    sum: f64,
    squares: f64,
}

/// Least variance of logarithms: clocks and schedulers spread even a fixed service time by 1 %.
const VARIANCE_MIN: f64 = 1e-4;

// === impl LatencySample ===

impl LatencySample {
    /// Adds the logarithm of a latency.
    pub fn add(&mut self, ln_latency: f64) {
        self.count += 1.0;
        self.sum += ln_latency;
        self.squares += ln_latency * ln_latency;
    }

    /// Returns the number of latencies, less what was forgotten.
    #[must_use]
    pub const fn count(&self) -> f64 {
        self.count
    }

    /// Returns `true` if there is no latency.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0.0
    }

    /// Returns the mean logarithm; not a number if there is no latency.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// Returns two standard errors of the mean: 95 % certainty.
    pub(super) fn error(&self) -> f64 {
        2.0 * self.mean_variance().sqrt()
    }

    /// Returns a mean that the true one exceeds with certainty.
    pub(super) fn lower_mean(&self) -> f64 {
        self.mean() - self.error()
    }

    /// Returns the latencies less a delay that is the observer's own. The mean stays at the baseline or above it,
    /// as far as it was: a delay that is estimated too long must not make an upstream faster than it ever was.
    pub(super) fn less(&self, own_delay_s: f64, baseline: f64) -> Self {
        let mean = self.mean();
        if self.is_empty() || mean <= baseline {
            return *self;
        }
        let rest_s = (exp(mean) - own_delay_s).max(1e-6);
        let shift = ln(rest_s).max(baseline) - mean;
        Self {
            count: self.count,
            sum: self.sum + self.count * shift,
            squares: self.squares + shift * (2.0 * self.sum + self.count * shift),
        }
    }

    /// Returns the variance of the mean.
    pub(super) fn mean_variance(&self) -> f64 {
        let mean = self.mean();
        (self.squares / self.count - mean * mean).max(VARIANCE_MIN) / self.count
    }

    /// Adds a newer round, and forgets a part of the older ones.
    pub(super) fn pool(&mut self, newer: &Self, keep: f64) {
        self.count = self.count * keep + newer.count;
        self.sum = self.sum * keep + newer.sum;
        self.squares = self.squares * keep + newer.squares;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_many_is_more_certain_than_one_of_few() {
        let sample = |count: u32| {
            let mut sample = LatencySample::default();
            (0..count).for_each(|i| sample.add(f64::from(i % 2)));
            sample
        };
        let (few, many) = (sample(16), sample(64));
        assert_eq!((few.mean(), many.mean()), (0.5, 0.5));
        assert_eq!(few.mean_variance(), 4.0 * many.mean_variance());
    }

    #[test]
    fn a_pool_forgets_a_part_of_what_is_old() {
        let mut pool = LatencySample::default();
        let mut round = LatencySample::default();
        (0..100).for_each(|_| round.add(1.0));
        (0..50).for_each(|_| pool.pool(&round, 0.75));
        assert!((pool.count() - 400.0).abs() < 1.0, "{}", pool.count());
        assert!((pool.mean() - 1.0).abs() < 1e-9);
    }
}
