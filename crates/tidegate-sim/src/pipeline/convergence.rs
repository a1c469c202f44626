use super::{Fault, PipelineReport, Tick};
use std::time::Duration;
use tidegate_core::window::Stage;

/// The largest deviation of a converged window from its final size. The law settles anywhere between 0.9 and 1.25
/// times the window by Little's law, 16 % to either side of the middle, and knows the rate of a stage with high
/// variance to 20 %: 1.16 × 1.2 = 1.4.
const NEAR: f64 = 0.4;

/// The least size of a recovered window relative to before the fault: one decrease.
const BACK: f64 = 0.7;

// === impl PipelineReport ===

impl PipelineReport {
    /// Returns the time after `from` until the windows of all stages through this one stay within 40 % of their
    /// final size, each averaged over `smooth`; `None` if they do not for the last third of the time until
    /// `until`.
    #[must_use]
    pub fn converged_after(
        &self,
        through: Stage,
        smooth: Duration,
        from: Duration,
        until: Duration,
    ) -> Option<Duration> {
        let last = from + (until.checked_sub(from)?) * 2 / 3;
        let mut converged = from;
        for stage in &Stage::ALL[..=through.index()] {
            let windows = self.smoothed(*stage, smooth, from, until);
            let (sum, count) = windows
                .iter()
                .filter(|(at, _)| *at >= last)
                .fold((0.0, 0.0), |(sum, count), (_, window)| (sum + window, count + 1.0));
            let end = sum / count;
            let is_far = |(_, window): &&(Duration, f64)| (window / end - 1.0).abs() > NEAR;
            let far = windows.iter().rev().find(is_far);
            converged = converged.max(far.map_or(from, |(at, _)| *at));
        }
        (converged < last).then(|| converged - from)
    }

    /// Returns the time from the begin of a fault until the windows of its stage and of all before it were at the
    /// minimum at once.
    #[must_use]
    pub fn least_after(&self, fault: &Fault, least: u64) -> Option<Duration> {
        let stages = ..=fault.stage.index();
        let is_least = |tick: &&Tick| tick.windows[stages].iter().all(|window| *window <= least);
        let tick = self.between(fault.from, fault.until).find(is_least)?;
        Some(tick.at().saturating_sub(fault.from))
    }

    /// Returns the time from the end of a fault until its stage and all before it had windows of at least 70 % of
    /// the size before the fault, and items left Store at 90 % of the rate before it.
    #[must_use]
    pub fn recovered_after(&self, fault: &Fault) -> Option<Duration> {
        let second = Duration::from_secs(1);
        let before = self.between(fault.from.saturating_sub(second), fault.from).last()?;
        let rate_before = self.rate(before.at().checked_sub(5 * second)?, before.at())?;
        let is_back = |tick: &&Tick| {
            let windows = tick.windows.iter().zip(&before.windows).take(fault.stage.index() + 1);
            let shares = windows.map(|(now, before)| *now as f64 / *before as f64);
            let rate = self.rate(tick.at() - second, tick.at()).unwrap_or_default();
            shares.fold(1.0, f64::min) >= BACK - 0.001 && rate >= 0.9 * rate_before
        };
        let tick = self.between(fault.until, Duration::MAX).find(is_back)?;
        Some(tick.at() - fault.until)
    }

    /// Items a second that left Store in this time.
    fn rate(&self, from: Duration, until: Duration) -> Option<f64> {
        let mut ticks = self.between(from, until + Duration::from_millis(1));
        let first = ticks.next()?;
        let last = ticks.last()?;
        let items = (last.delivered - first.delivered) as f64;
        Some(items / (last.at() - first.at()).as_secs_f64())
    }

    fn between(&self, from: Duration, until: Duration) -> impl Iterator<Item = &Tick> {
        self.ticks.iter().filter(move |tick| tick.at() >= from && tick.at() < until)
    }

    /// The window of a stage, each time the mean of this long until then.
    fn smoothed(
        &self,
        stage: Stage,
        smooth: Duration,
        from: Duration,
        until: Duration,
    ) -> Vec<(Duration, f64)> {
        let windows: Vec<(Duration, f64)> = self
            .between(from, until)
            .map(|tick| (tick.at(), tick.windows[stage.index()] as f64))
            .collect();
        let mean = |i: usize| {
            let since = windows[i].0.saturating_sub(smooth);
            let first = windows.partition_point(|(at, _)| *at <= since).min(i);
            let part = &windows[first..=i];
            part.iter().map(|(_, window)| window).sum::<f64>() / part.len() as f64
        };
        (0..windows.len()).map(|i| (windows[i].0, mean(i))).collect()
    }
}

// === impl Tick ===

impl Tick {
    fn at(&self) -> Duration {
        Duration::from_millis(self.at_ms)
    }
}
