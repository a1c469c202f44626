use super::LoadShape;
use crate::random::Draw;
use crate::scenario::{Class, Spacing};
use tidegate_core::rng::Rng;

/// The arrivals of one class.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    spacing: Spacing,
    /// Requests a second at a load of 1.
    per_s: f64,
    /// Loads of phases that the class has its own of.
    own_loads: Vec<(String, f64)>,
    rng: Rng,
    now_s: f64,
    /// Even spacing: what is left of the distance to the next, of 1.
    left: f64,
}

// === impl Stream ===

impl Stream {
    pub(super) fn new(class: &Class, spacing: Spacing, per_s: f64, mut rng: Rng) -> Self {
        // Classes with the same rate must not come in step.
        let left = rng.uniform();
        let own_loads = class.loads.iter().map(|(name, load)| (name.clone(), *load)).collect();
        Self { spacing, per_s, own_loads, rng, now_s: 0.0, left }
    }

    /// Returns the time of the next arrival, in seconds from the start.
    pub(super) fn next(&mut self, load_shape: &LoadShape) -> Option<f64> {
        loop {
            let stretch = load_shape.stretch(self.now_s)?;
            let own = self.own_loads.iter().find(|(name, _)| *name == stretch.span.name);
            let load = own.map_or(stretch.span.load, |(_, load)| *load);
            let peak_per_s = self.per_s * load * load_shape.peak();
            let at_s = match self.spacing {
                Spacing::Poisson if peak_per_s > 0.0 => {
                    self.now_s + self.rng.exponential(1.0 / peak_per_s)
                }
                Spacing::Even => match self.even(load_shape, self.per_s * load, stretch.until_s) {
                    Some(at_s) => return Some(at_s),
                    None => continue,
                },
                Spacing::Poisson => stretch.until_s,
            };
            if at_s >= stretch.until_s {
                // What is memoryless can start anew wherever the rate changes.
                self.now_s = stretch.until_s;
                continue;
            }
            self.now_s = at_s;
            // Thinned out where the wave is below its peak.
            let height = load_shape.height(at_s) / load_shape.peak();
            if height >= 1.0 || self.rng.uniform() <= height {
                return Some(at_s);
            }
        }
    }

    /// The next one at even distances, as long as this stretch lasts. A wave is followed by the millisecond.
    fn even(&mut self, load_shape: &LoadShape, per_s: f64, until_s: f64) -> Option<f64> {
        const STEP_S: f64 = 0.001;
        while self.now_s < until_s {
            let is_flat = load_shape.peak() == 1.0 && load_shape.height(self.now_s) == 1.0;
            let step_s =
                if is_flat { until_s - self.now_s } else { STEP_S.min(until_s - self.now_s) };
            let rate = per_s * load_shape.height(self.now_s);
            let needs_s = if rate > 0.0 { self.left / rate } else { f64::INFINITY };
            if needs_s < step_s {
                self.left = 1.0;
                self.now_s += needs_s;
                return Some(self.now_s);
            }
            self.left -= step_s * rate;
            self.now_s += step_s;
        }
        self.now_s = until_s;
        None
    }
}
