use crate::random::Draw;
use crate::scenario::{PhaseSpan, Scenario, Wave};
use tidegate_core::rng::Rng;

/// The shape of the load over time: phases, and a wave on top of them.
#[derive(Clone, Debug)]
pub(super) struct LoadShape {
    spans: Vec<PhaseSpan>,
    wave: Option<Wave>,
    /// The times at which bursts and pauses begin, in seconds.
    turns_s: Vec<f64>,
}

/// A stretch in which the load stays below a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch<'a> {
    pub(super) until_s: f64,
    /// The phase it belongs to.
    pub(super) span: &'a PhaseSpan,
}

// === impl LoadShape ===

impl LoadShape {
    pub(super) fn new(scenario: &Scenario, rng: &mut Rng) -> Self {
        let mut turns_s = Vec::new();
        if let Some(Wave::Bursts { mean_s, .. }) = scenario.wave {
            let mut at_s = 0.0;
            while at_s < scenario.duration_s {
                // Not shorter than a millisecond, or there would be no end to them.
                at_s += rng.exponential(mean_s).max(0.001);
                turns_s.push(at_s);
            }
        }
        Self { spans: scenario.phase_spans(), wave: scenario.wave, turns_s }
    }

    /// The phase of this moment, until its end; `None` when all is over.
    pub(super) fn stretch(&self, now_s: f64) -> Option<Stretch<'_>> {
        let span = self.spans.iter().find(|span| now_s < span.until_s)?;
        Some(Stretch { until_s: span.until_s, span })
    }

    /// Returns the factor of all rates at this moment: the phase's load times the wave. `None` after the last
    /// phase.
    pub(super) fn load(&self, now_s: f64) -> Option<f64> {
        let stretch = self.stretch(now_s)?;
        Some(stretch.span.load * self.height(now_s))
    }

    /// Returns the largest factor of the wave.
    pub(super) fn peak(&self) -> f64 {
        self.wave.map_or(1.0, |wave| wave.peak())
    }

    /// Returns the factor of the wave at this moment.
    pub(super) fn height(&self, now_s: f64) -> f64 {
        match self.wave {
            None => 1.0,
            Some(Wave::Square { high, low, period_s }) => {
                if part_of(now_s, period_s) < 0.5 {
                    high
                } else {
                    low
                }
            }
            Some(Wave::Sawtooth { peak, period_s }) => peak * part_of(now_s, period_s),
            Some(Wave::Bursts { high, low, .. }) => {
                let turned = self.turns_s.partition_point(|turn_s| *turn_s <= now_s);
                if turned % 2 == 0 { high } else { low }
            }
        }
    }
}

/// Returns the position of a time in its period, 0 … 1.
fn part_of(now_s: f64, period_s: f64) -> f64 {
    let periods = now_s / period_s;
    periods - periods.floor()
}
