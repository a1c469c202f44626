//! Which scenario is meant, and in which form.

use crate::commands::scenario_file;
use crate::failure::Failure;
use std::time::Duration;
use tidegate_sim::scenario::{Mode, Scenario};

/// The scenario that is called so or lies there, in the form that was asked for.
pub fn scenario(name: &str, short: bool, lasting: Option<Duration>) -> Result<Scenario, Failure> {
    let whole = scenario_file::read(name, Mode::Drill)?;
    let form = if short { whole.shortened() } else { whole };
    match lasting {
        Some(duration) => stretched(&form, duration),
        None => Ok(form),
    }
}

/// The same in another time. What is not judged of a phase stays as long as it was, but at most half of it.
fn stretched(scenario: &Scenario, duration: Duration) -> Result<Scenario, Failure> {
    let form = Scenario { short: None, ..scenario.lasting(duration.as_secs_f64()) };
    let spans = form.phase_spans();
    let shortest_s = spans.iter().map(|span| span.until_s - span.from_s).fold(f64::MAX, f64::min);
    let form = Scenario { settle_s: form.settle_s.min(shortest_s / 2.0), ..form };
    let mistakes = form.mistakes();
    match mistakes.first() {
        None => Ok(form),
        Some(mistake) => Err(Failure::Usage(format!("{} in this time: {mistake}", form.name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::scenario::PhaseSpan;

    #[test]
    fn in_less_time_something_is_still_judged() {
        let whole = scenario("load_sweep", false, None).unwrap();
        let brief = scenario("load_sweep", false, Some(Duration::from_secs(7))).unwrap();
        assert_eq!(brief.duration_s, 7.0);
        assert_eq!(brief.phase_spans().len(), whole.phase_spans().len());
        let judged = |span: &PhaseSpan| span.until_s - span.from_s - brief.settle_s;
        assert!(brief.phase_spans().iter().all(|span| judged(span) >= brief.settle_s));
        assert!(brief.settle_s > 0.0);
        let short = scenario("load_sweep", true, None).unwrap();
        assert_eq!(Some(short.duration_s), whole.short.map(|short| short.duration_s));
    }
}
