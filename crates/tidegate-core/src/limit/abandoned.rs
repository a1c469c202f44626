use super::logarithm::exp;

/// Requests that were given up without a response. The upstream may go on with them, and can't say so.
///
/// Constant size: each comes with the time that it is expected to stay, and the number falls off with their mean.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Abandoned {
    number: f64,
    at_s: f64,
    stay_s: f64,
}

// === impl Abandoned ===

impl Abandoned {
    /// Counts a request that was given up and is expected to stay for so many seconds.
    pub(super) fn add(&mut self, now_s: f64, stay_s: f64) {
        let left = self.number(now_s);
        self.stay_s = (left * self.stay_s + stay_s) / (left + 1.0);
        self.number = left + 1.0;
        self.at_s = now_s;
    }

    /// Number that is still there.
    pub(super) fn count(&self, now_s: f64) -> u32 {
        // Most of the time there is none, and this is called for each request.
        if self.number == 0.0 { 0 } else { self.number(now_s).round() as u32 }
    }

    fn number(&self, now_s: f64) -> f64 {
        if self.number == 0.0 {
            return 0.0;
        }
        let lives = (now_s - self.at_s).max(0.0) / self.stay_s.max(1e-6);
        self.number * exp(-lives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_stay_about_as_long_as_expected() {
        let mut abandoned = Abandoned::default();
        assert_eq!(abandoned.count(5.0), 0);
        (0..20).for_each(|_| abandoned.add(10.0, 2.0));
        assert_eq!(abandoned.count(10.0), 20);
        assert_eq!(abandoned.count(12.0), 7);
        assert_eq!(abandoned.count(20.0), 0);
        abandoned.add(60.0, 1.0);
        assert_eq!([60.0, 60.6, 60.8].map(|at| abandoned.count(at)), [1, 1, 0]);
    }
}
