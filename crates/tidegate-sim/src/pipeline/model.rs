use super::load::Arrivals;
use super::measure::Measures;
use super::stages::{STEP, Stages};
use super::{PipelineReport, PipelineScenario};
use std::time::Duration;
use tidegate_core::rng::Rng;
use tidegate_core::window::WindowConfigError;

/// Runs a scenario to its end.
///
/// # Errors
///
/// When its configuration of the windows is not valid.
pub fn run(scenario: &PipelineScenario) -> Result<PipelineReport, WindowConfigError> {
    let mut rng = Rng::new(scenario.seed);
    let mut arrivals = Arrivals::new(scenario.load, rng.fork());
    let mut stages = Stages::new(scenario.config, scenario.law, &scenario.stages, &mut rng)?;
    let mut measures = Measures::new(scenario);
    let mut now = Duration::ZERO;
    let mut next_tick = scenario.config.delta;
    while now < scenario.duration {
        let offered = arrivals.offered(now, STEP);
        let slowness = std::array::from_fn(|stage| scenario.slowness(stage, now));
        let moved = stages.step(offered, slowness);
        measures.delivered(moved.delivered, now);
        measures.offered(offered, moved.taken, now);
        measures.look(now, &stages.channels, &stages.scheduler);
        now += STEP;
        if now >= next_tick {
            let grants = *stages.tick(now);
            measures.tick(now, &stages.channels, &grants);
            next_tick += scenario.config.delta;
        }
    }
    Ok(measures.into_report(stages.held(), stages.unsent))
}
