use super::WindowConfigError;
use serde::Serialize;
use std::time::Duration;

/// Bounds and constants of the windows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowConfig {
    /// Minimum window, in slots, 16 … `window_max`; 1,024 by default.
    pub window_min: u64,
    /// Maximum window, in slots, up to 16,777,216; 131,072 by default.
    pub window_max: u64,
    /// Bytes in all windows together, at least 1 MiB; 512 MiB by default.
    pub budget_bytes: u64,
    /// Factor of a decrease, 0.5 … 0.95; 0.7 by default.
    pub beta: f64,
    /// Lower end of the occupancy band of a backlogged stage, above 0; 0.5 by default.
    pub occupancy_low: f64,
    /// Upper end of that band, at most 1; 0.85 by default. `beta` × this must be above `occupancy_low`.
    pub occupancy_high: f64,
    /// Interval between two decisions, 100 ms … 60 s; 1 s by default.
    pub period: Duration,
    /// Interval between two measurements, 1 ms … half a `period`; 100 ms by default.
    pub delta: Duration,
    /// Target for the time of an item in one stage, 1 ms … 60 s; 250 ms by default.
    pub target_delay: Duration,
    /// Minimum increase, in slots, 1 … `window_max`; 64 by default.
    pub increase_step: u64,
    /// Ratio of p99 to its baseline that counts as congestion, above 1 and at most 100; 2 by default.
    pub latency_factor: f64,
    /// Minimum size at which an item is counted, 1 byte … 1 MiB; 64 bytes by default, the size of a slot.
    pub item_bytes_min: u64,
}

// === impl WindowConfig ===

impl WindowConfig {
    /// θ, the share of a window that is granted as credits. A sender that fills them is at this occupancy, and a
    /// full decrease then ends exactly at the upper end of the band: θ / β = `occupancy_high`. 0.595 by default.
    #[must_use]
    pub fn granted_share(&self) -> f64 {
        self.beta * self.occupancy_high
    }

    /// γ, the maximum growth of a window in one period: from θ a full increase ends exactly at the lower end of
    /// the band, θ / γ = `occupancy_low`. 1.19 by default, which grows 1,024 to 131,072 in 28 periods.
    #[must_use]
    pub fn growth_max(&self) -> f64 {
        self.granted_share() / self.occupancy_low
    }

    /// Number of items from which a stage counts as backlogged, also without a waiting sender: the minimum window
    /// at the lower end of the band. 512 by default.
    #[must_use]
    pub fn backlog_min(&self) -> u64 {
        (self.window_min as f64 * self.occupancy_low) as u64
    }

    /// Checks that each value is in its range, and returns the configuration.
    ///
    /// # Errors
    ///
    /// The first value that is out of range.
    pub fn check(self) -> Result<Self, WindowConfigError> {
        let (ms, minute) = (Duration::from_millis, Duration::from_secs(60));
        whole("window_max", self.window_max, 16, 1 << 24)?;
        whole("window_min", self.window_min, 16, self.window_max)?;
        whole("budget_bytes", self.budget_bytes, 1 << 20, u64::MAX)?;
        whole("increase_step", self.increase_step, 1, self.window_max)?;
        whole("item_bytes_min", self.item_bytes_min, 1, 1 << 20)?;
        real("beta", self.beta, 0.5, 0.95)?;
        real("occupancy_high", self.occupancy_high, 0.1, 1.0)?;
        real("latency_factor", self.latency_factor, 1.01, 100.0)?;
        // A hundredth below θ, so that γ is above 1 and a window can grow.
        real("occupancy_low", self.occupancy_low, 0.01, self.granted_share() - 0.01)?;
        time("period", self.period, ms(100), minute)?;
        time("delta", self.delta, ms(1), self.period / 2)?;
        time("target_delay", self.target_delay, ms(1), minute)?;
        Ok(self)
    }

    /// Maximum growth of a window in one measurement, so that a period's growth is `growth_max`: its nth root, by
    /// operations that give the same last digit on every platform.
    pub(super) fn growth_max_per_delta(&self) -> f64 {
        let growth = self.growth_max();
        let n = (self.period.as_secs_f64() / self.delta.as_secs_f64()).round().clamp(1.0, 1e4);
        // Newton's method from above: the power is convex for γ > 1, so the iteration approaches the root without
        // passing it.
        let mut root = 1.0 + (growth - 1.0) / n;
        for _ in 0..8 {
            let below = (1..n as u32).fold(1.0, |power, _| power * root);
            root -= (below * root - growth) / (n * below);
        }
        root
    }
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self {
            window_min: 1_024,
            window_max: 131_072,
            budget_bytes: 512 << 20,
            beta: 0.7,
            occupancy_low: 0.5,
            occupancy_high: 0.85,
            period: Duration::from_secs(1),
            delta: Duration::from_millis(100),
            target_delay: Duration::from_millis(250),
            increase_step: 64,
            latency_factor: 2.0,
            item_bytes_min: 64,
        }
    }
}

fn whole(field: &'static str, value: u64, min: u64, max: u64) -> Result<(), WindowConfigError> {
    let fits = (min..=max).contains(&value);
    if fits { Ok(()) } else { Err(WindowConfigError::Whole { field, value, min, max }) }
}

fn real(field: &'static str, value: f64, min: f64, max: f64) -> Result<(), WindowConfigError> {
    let fits = (min..=max).contains(&value);
    if fits { Ok(()) } else { Err(WindowConfigError::Real { field, value, min, max }) }
}

fn time(
    field: &'static str,
    value: Duration,
    min: Duration,
    max: Duration,
) -> Result<(), WindowConfigError> {
    let fits = (min..=max).contains(&value);
    if fits { Ok(()) } else { Err(WindowConfigError::Time { field, value, min, max }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_the_derived_ones() {
        let config = WindowConfig::default().check().unwrap();
        assert!((config.granted_share() - 0.595).abs() < 1e-12);
        assert!((config.growth_max() - 1.19).abs() < 1e-12);
        assert_eq!(config.backlog_min(), 512);
        let of_a_period = (0..10).fold(1.0, |power, _| power * config.growth_max_per_delta());
        assert!((of_a_period - 1.19).abs() < 1e-12);
        let periods = (0..28).fold(1_024.0, |window, _| window * config.growth_max());
        assert!(periods > 131_072.0 && periods / config.growth_max() < 131_072.0);
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let config = WindowConfig { window_min: 200_000, ..WindowConfig::default() };
        let error = config.check().unwrap_err();
        assert_eq!(error.to_string(), "window_min is 200000: it must be 16 … 131072");
        let config = WindowConfig { occupancy_low: 0.6, ..WindowConfig::default() };
        assert!(config.check().unwrap_err().to_string().starts_with("occupancy_low is 0.6:"));
        let config = WindowConfig { beta: f64::NAN, ..WindowConfig::default() };
        assert!(config.check().is_err());
        let config = WindowConfig { delta: Duration::ZERO, ..WindowConfig::default() };
        assert_eq!(config.check().unwrap_err().to_string(), "delta is 0ns: it must be 1ms … 500ms");
    }
}
