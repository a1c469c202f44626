use super::LoadShape;
use crate::random::Draw;
use crate::scenario::{Scenario, Spacing};
use tidegate_core::rng::Rng;

/// Records that are due in one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The time from the start.
    pub at_ms: u64,
    /// Number of records.
    pub records: u64,
}

/// All records of a scenario with a pipeline, millisecond by millisecond: there is an [`Offer`] for each, also
/// where nothing is due.
///
/// ```
/// use tidegate_sim::arrivals::Offers;
/// use tidegate_sim::scenario::Scenario;
///
/// let scenario = Scenario::read("one", r#"
///     about = "Half of what the store does."
///     duration_s = 2
///     arrivals = "even"
///     pipeline = { store_per_s = 1000, share = 0.5 }
/// "#)?;
/// let offers: Vec<_> = Offers::new(&scenario, 1).collect();
/// assert_eq!(offers.len(), 2_000);
/// assert_eq!(offers.iter().map(|offer| offer.records).sum::<u64>(), 1_000);
/// # Ok::<(), tidegate_sim::scenario::ScenarioError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Offers {
    load_shape: LoadShape,
    spacing: Spacing,
    /// Records a second at a load of 1.
    per_s: f64,
    rng: Rng,
    next_ms: u64,
    /// The fraction of the next record that is due, 0 … 1.
    part: f64,
}

// === impl Offers ===

impl Offers {
    /// Returns the records that this scenario offers with this seed; none without a pipeline.
    #[must_use]
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let mut seeds = Rng::new(seed);
        let load_shape = LoadShape::new(scenario, &mut seeds.fork());
        let world = scenario.pipeline.as_ref();
        Self {
            load_shape,
            spacing: scenario.arrivals,
            per_s: world.map_or(0.0, |world| world.store_per_s * world.share),
            rng: seeds.fork(),
            next_ms: 0,
            part: 0.0,
        }
    }
}

impl Iterator for Offers {
    type Item = Offer;

    fn next(&mut self) -> Option<Offer> {
        let at_ms = self.next_ms;
        let load = self.load_shape.load(at_ms as f64 / 1e3)?;
        self.next_ms += 1;
        let mean = self.per_s * load / 1e3;
        self.part += match self.spacing {
            Spacing::Even => mean,
            // Records come in groups: the variance of a millisecond is the square of its mean.
            Spacing::Poisson => self.rng.exponential(mean),
        };
        // A thousandth is forgiven: sums of parts that should be whole fall short by their last digits.
        let records = (self.part + 1e-3) as u64;
        self.part -= records as f64;
        Some(Offer { at_ms, records })
    }
}
