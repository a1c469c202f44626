use super::LoadShape;
use super::stream::Stream;
use crate::scenario::{Class, Scenario, Service};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::rng::Rng;

/// The due times of the tasks of a scenario, in order.
///
/// ```
/// use tidegate_sim::arrivals::TaskArrivals;
/// use tidegate_sim::scenario::Scenario;
///
/// let scenario = Scenario::read("one", r#"
///     about = "Half of what two executors can do."
///     duration_s = 1
///     arrivals = "even"
///     executors = { executors = 2, task_ms = 100, share = 0.5, placements = ["pull"] }
/// "#)?;
/// assert_eq!(TaskArrivals::new(&scenario, 1).count(), 10);
/// # Ok::<(), tidegate_sim::scenario::ScenarioError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TaskArrivals {
    load_shape: LoadShape,
    stream: Stream,
}

// === impl TaskArrivals ===

impl TaskArrivals {
    /// The tasks of this scenario with this seed; none without executors.
    #[must_use]
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let mut seeds = Rng::new(seed);
        let load_shape = LoadShape::new(scenario, &mut seeds.fork());
        let per_s = scenario
            .executors
            .as_ref()
            .map_or(0.0, |world| world.share * f64::from(world.executors) / (world.task_ms / 1e3));
        let tasks = Class {
            name: "tasks".to_owned(),
            priority: MessagePriority::Normal,
            tenant: None,
            share: None,
            per_s: Some(per_s),
            loads: BTreeMap::new(),
            service: Service::Fixed { ms: 0.0 },
            body_bytes: 0,
            deadline_ms: None,
            retry: None,
        };
        let stream = Stream::new(&tasks, scenario.arrivals, per_s, seeds.fork());
        Self { load_shape, stream }
    }
}

impl Iterator for TaskArrivals {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.stream.next(&self.load_shape).map(Duration::from_secs_f64)
    }
}
