//! Positions of values on a chart, and the ticks of an axis.

use crate::random::ln;
use crate::report::format::short;

/// The left edge and the width of a plot, in pixels.
pub(super) const LEFT: f64 = 64.0;
pub(super) const PLOT_WIDTH: f64 = 820.0;

/// Latencies that are further apart than this are shown on a logarithmic scale: on a linear one the low ones
/// would all lie on the axis.
const LOG_ABOVE: f64 = 50.0;

/// An axis of values, from the bottom of a chart (0) to its top (1).
#[derive(Clone, Debug)]
pub(super) struct Scale {
    least: f64,
    most: f64,
    pub(super) is_log: bool,
    pub(super) ticks: Vec<f64>,
}

/// Returns the horizontal position of a moment.
pub(super) fn x_of(at_s: f64, duration_s: f64) -> f64 {
    LEFT + (at_s / duration_s.max(1e-9)).clamp(0.0, 1.0) * PLOT_WIDTH
}

// === impl Scale ===

impl Scale {
    /// The scale that shows all these values of this unit.
    pub(super) fn of(values: impl Iterator<Item = f64> + Clone, unit: &str) -> Self {
        let most = values.clone().fold(0.0, f64::max);
        let positive = values.clone().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let least = values.fold(0.0, f64::min);
        let is_time = ["ms", "µs", "s"].contains(&unit);
        if is_time && least >= 0.0 && most > positive * LOG_ABOVE {
            Self::logarithmic(positive, most)
        } else {
            Self::linear(least, most)
        }
    }

    /// From 0, or from `least` where that is below it, to above `most`.
    fn linear(least: f64, most: f64) -> Self {
        let most = if most > least { most } else { least + 1.0 };
        let step = step_for((most - least) / 5.0);
        let from = (least / step).floor();
        // A line may touch the top tick, and nothing may be above it.
        let until = (most / step).ceil();
        let ticks: Vec<f64> = count_up(from, until).map(|n| n * step).collect();
        Self { least: from * step, most: until * step, is_log: false, ticks }
    }

    /// Whole decades are too coarse where there are few of them: the ends are at 1, 2 or 5 of one.
    fn logarithmic(least: f64, most: f64) -> Self {
        let mut ticks = vec![nice_at_most(least)];
        while let Some(&last) = ticks.last()
            && last < most
        {
            ticks.push(nice_above(last));
        }
        let (least, most) = (ticks[0], ticks[ticks.len() - 1]);
        if ticks.len() > 9 {
            ticks.retain(|tick| nice_at_most(*tick) == decade_of(*tick));
        }
        Self { least, most, is_log: true, ticks }
    }

    /// Returns the relative position of a value, 0 … 1, clamped to the edges.
    pub(super) fn place(&self, value: f64) -> f64 {
        let place = match self.is_log {
            true if value <= self.least => 0.0,
            true => ln(value / self.least) / ln(self.most / self.least),
            false => (value - self.least) / (self.most - self.least),
        };
        place.clamp(0.0, 1.0)
    }
}

/// Moments of a run at which an axis of time has a tick: no more than about eight.
pub(super) fn time_ticks(duration_s: f64) -> Vec<f64> {
    let steps = [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0];
    let fits = |step: &f64| duration_s / step <= 8.5;
    let step = match steps.into_iter().find(fits) {
        Some(1.0) | None => step_for(duration_s / 8.5),
        Some(step) => step,
    };
    // A hair more, because 0.3 is a little less than three times 0.1.
    count_up(0.0, (duration_s / step + 1e-9).floor()).map(|n| n * step).collect()
}

/// Formats a moment on a time axis: in seconds, or as `m:ss` for long runs.
pub(super) fn moment(at_s: f64, duration_s: f64) -> String {
    if duration_s < 180.0 {
        return short(at_s);
    }
    let whole = at_s.round().max(0.0) as u64;
    format!("{}:{:02}", whole / 60, whole % 60)
}

fn count_up(from: f64, until: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(from), |n| Some(n + 1.0)).take_while(move |n| *n <= until).take(64)
}

/// The least of 1, 2, 5, 10, … that is at least this.
fn step_for(at_least: f64) -> f64 {
    let below = nice_at_most(at_least);
    if below >= at_least { below } else { nice_above(below) }
}

/// The greatest of …, 0.1, 0.2, 0.5, 1, 2, 5, … that is at most this.
fn nice_at_most(value: f64) -> f64 {
    let decade = decade_of(value);
    let fits = [5.0, 2.0].into_iter().find(|digit| value >= digit * decade);
    fits.unwrap_or(1.0) * decade
}

fn nice_above(nice: f64) -> f64 {
    let decade = decade_of(nice);
    // Between the digits, because a digit of a decade below 1 is not exact.
    match nice / decade {
        digit if digit < 1.5 => 2.0 * decade,
        digit if digit < 3.5 => 5.0 * decade,
        _ => decade_of(nice * 10.0),
    }
}

/// The power of ten that is at most this, between 1e-9 and 1e15. Always the same bits for the same power.
fn decade_of(value: f64) -> f64 {
    const DECADES: [f64; 25] = [
        1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6,
        1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ];
    let found = DECADES.into_iter().rev().find(|decade| *decade <= value * (1.0 + 1e-12));
    found.unwrap_or(DECADES[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[f64], unit: &str) -> Vec<String> {
        Scale::of(values.iter().copied(), unit).ticks.iter().map(|tick| short(*tick)).collect()
    }

    #[test]
    fn ticks_are_numbers_that_people_count_in() {
        assert_eq!(ticks(&[0.0, 97.0], "requests/s"), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(ticks(&[3.0, 0.7], "share"), ["0", "1", "2", "3"]);
        assert_eq!(ticks(&[0.27], "share"), ["0", "0.1", "0.2", "0.3"]);
        assert_eq!(ticks(&[12_345.0], "requests/s"), ["0", "5,000", "10,000", "15,000"]);
        assert_eq!(ticks(&[-4.0, 7.0], "records"), ["−5", "0", "5", "10"]);
    }

    #[test]
    fn latencies_far_apart_are_on_a_logarithmic_scale() {
        assert_eq!(ticks(&[12.0, 900.0], "ms"), ["10", "20", "50", "100", "200", "500", "1,000"]);
        assert_eq!(ticks(&[0.3, 40_000.0], "ms"), ["1", "10", "100", "1,000", "10,000"]);
        assert!(!Scale::of([12.0, 500.0].into_iter(), "ms").is_log, "no more than 50 times");
        assert!(!Scale::of([1.0, 500.0].into_iter(), "requests/s").is_log, "no latency");
    }

    #[test]
    fn every_value_is_within_its_scale() {
        for size in [1e-9, 1e-3, 0.1, 0.99, 1.0, 5.0, 7.3, 1e3, 1e9] {
            for unit in ["ms", "requests/s"] {
                let values = [size, size * 3.0, size * 400.0];
                let scale = Scale::of(values.into_iter(), unit);
                let places = values.map(|value| scale.place(value));
                assert!(places[0] < places[1] && places[1] < places[2], "{values:?} {places:?}");
                assert!(
                    (0.0..=1.0).contains(&places[2]) && places[2] > 0.5,
                    "{values:?} {places:?}"
                );
                assert!((2..=10).contains(&scale.ticks.len()), "{values:?} {scale:?}");
            }
        }
    }

    #[test]
    fn nothing_at_all_has_a_scale_too() {
        for values in [&[][..], &[0.0], &[-1.0]] {
            let scale = Scale::of(values.iter().copied(), "ms");
            assert!(scale.ticks.len() >= 2 && scale.place(0.0).is_finite(), "{scale:?}");
        }
    }

    #[test]
    fn time_has_ticks_too() {
        assert_eq!(time_ticks(60.0), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]);
        assert_eq!(time_ticks(0.6).len(), 7);
        assert_eq!(time_ticks(600.0), [0.0, 120.0, 240.0, 360.0, 480.0, 600.0]);
        assert!(time_ticks(1e6).len() <= 9);
        assert_eq!(moment(30.0, 60.0), "30");
        assert_eq!(moment(150.0, 600.0), "2:30");
    }
}
