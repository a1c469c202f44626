//! The scenario of a drill, shortened or stretched.

use crate::failure::Failure;
use crate::scenario_file;
use std::time::Duration;
use tidegate_sim::scenario::{Mode, Scenario};

/// Reads the scenario with this name or path; shortens it, then stretches it to the duration.
pub fn read(name: &str, short: bool, duration: Option<Duration>) -> Result<Scenario, Failure> {
    let whole = scenario_file::read(name, Mode::Drill)?;
    let form = if short { whole.shortened() } else { whole };
    match duration {
        Some(duration) => stretched(&form, duration),
        None => Ok(form),
    }
}

/// Scales a scenario to this duration. Settling time stays, but is at most half of the shortest phase.
fn stretched(scenario: &Scenario, duration: Duration) -> Result<Scenario, Failure> {
    let form = Scenario { short: None, ..scenario.lasting(duration.as_secs_f64()) };
    let spans = form.phase_spans();
    let shortest_s = spans.iter().map(|span| span.until_s - span.from_s).fold(f64::MAX, f64::min);
    let form = Scenario { settle_s: form.settle_s.min(shortest_s / 2.0), ..form };
    let errors = form.errors();
    match errors.first() {
        None => Ok(form),
        Some(error) => Err(Failure::Usage(format!("{} with this --duration: {error}", form.name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::scenario::PhaseSpan;

    #[test]
    fn in_less_time_something_is_still_judged() {
        let whole = read("load_sweep", false, None).unwrap();
        let brief = read("load_sweep", false, Some(Duration::from_secs(7))).unwrap();
        assert_eq!(brief.duration_s, 7.0);
        assert_eq!(brief.phase_spans().len(), whole.phase_spans().len());
        let judged = |span: &PhaseSpan| span.until_s - span.from_s - brief.settle_s;
        assert!(brief.phase_spans().iter().all(|span| judged(span) >= brief.settle_s));
        assert!(brief.settle_s > 0.0);
        let short = read("load_sweep", true, None).unwrap();
        assert_eq!(Some(short.duration_s), whole.short.map(|short| short.duration_s));
    }
}
