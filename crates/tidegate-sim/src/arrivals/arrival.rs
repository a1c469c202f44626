use super::LoadShape;
use super::stream::Stream;
use crate::scenario::{Scenario, Work};
use std::time::Duration;
use tidegate_core::rng::Rng;

/// A request that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The time from the start.
    pub at: Duration,
    /// The class, by its index in the scenario.
    pub class: u16,
    /// The work that it asks of an upstream.
    pub work: Work,
}

/// All arrivals of a scenario with a gateway, in order of time.
///
/// ```
/// use tidegate_sim::arrivals::Arrivals;
/// use tidegate_sim::scenario::Scenario;
///
/// let scenario = Scenario::read("one", r#"
///     about = "A request each 100 ms."
///     duration_s = 1
///     arrivals = "even"
///     upstreams = { count = 1, slots = 1, queue = 0 }
///     class = [{ name = "a", per_s = 10, service = { kind = "fixed", ms = 5 } }]
/// "#)?;
/// assert_eq!(Arrivals::new(&scenario, 1).count(), 10);
/// # Ok::<(), tidegate_sim::scenario::ScenarioError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Arrivals {
    load_shape: LoadShape,
    lanes: Vec<Lane>,
}

/// One class: when its next one comes, and where its work is drawn from.
#[derive(Clone, Debug)]
struct Lane {
    stream: Stream,
    next_s: Option<f64>,
    service: crate::scenario::Service,
    rng: Rng,
}

// === impl Arrivals ===

impl Arrivals {
    /// The arrivals of this scenario with this seed.
    #[must_use]
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let mut seeds = Rng::new(seed);
        let load_shape = LoadShape::new(scenario, &mut seeds.fork());
        let capacity_per_s = scenario.capacity_per_s().unwrap_or(0.0);
        // A stream for each use: one class more leaves the others as they were.
        let lane = |class: &crate::scenario::Class| {
            let per_s = class.per_s.unwrap_or(class.share.unwrap_or(0.0) * capacity_per_s);
            let mut stream = Stream::new(class, scenario.arrivals, per_s, seeds.fork());
            let next_s = stream.next(&load_shape);
            Lane { stream, next_s, service: class.service, rng: seeds.fork() }
        };
        let lanes = scenario.classes.iter().map(lane).collect();
        Self { load_shape, lanes }
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let coming = self.lanes.iter().enumerate();
        let coming = coming.filter_map(|(class, lane)| Some((class, lane.next_s?)));
        let (class, at_s) = coming.min_by(|a, b| a.1.total_cmp(&b.1))?;
        let lane = &mut self.lanes[class];
        lane.next_s = lane.stream.next(&self.load_shape);
        let work = lane.service.draw(&mut lane.rng);
        Some(Arrival { at: Duration::from_secs_f64(at_s), class: class as u16, work })
    }
}
