//! Which scenario is meant.

use crate::commands::table::aligned;
use crate::failure::Failure;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tidegate_sim::catalog;
use tidegate_sim::scenario::{Scenario, World};

/// Names that are as unlike as this are not meant.
const LIKENESS_LEAST: f64 = 0.7;

/// The scenario that is called so or lies there, in the form that was asked for.
pub fn scenario(name: &str, short: bool, lasting: Option<Duration>) -> Result<Scenario, Failure> {
    let whole = read(name)?;
    let form = if short { whole.shortened() } else { whole };
    match lasting {
        Some(duration) => stretched(&form, duration),
        None => Ok(form),
    }
}

/// What ships, each in a line.
pub fn list() -> String {
    let heading = ["NAME", "WORLD", "SECONDS", "SHORT", "WHAT IT IS FOR"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    for (name, text) in catalog::shipped() {
        let Ok(scenario) = Scenario::read(name, text) else { continue };
        let world = match scenario.world() {
            Some(World::Gateway(_)) => "gateway",
            Some(World::Pipeline(_)) => "pipeline",
            Some(World::Executors(_)) => "executors",
            None => "nothing",
        };
        let short = scenario.short.map_or("–".to_owned(), |short| short.duration_s.to_string());
        lines.push(vec![
            name.to_owned(),
            world.to_owned(),
            scenario.duration_s.to_string(),
            short,
            scenario.about,
        ]);
    }
    aligned(&lines, |column| column == 2 || column == 3)
}

fn read(name: &str) -> Result<Scenario, Failure> {
    let wrong = |at: &str, error: &dyn std::fmt::Display| Failure::Usage(format!("{at}: {error}"));
    if let Some(found) = catalog::find(name) {
        return found.map_err(|error| wrong(name, &error));
    }
    let path = Path::new(name);
    let is_file = path.extension().is_some() || name.contains('/') || path.exists();
    if !is_file {
        return Err(Failure::Usage(unknown(name)));
    }
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::Usage(format!("can't read {name}: {error}; tidegate drill --list has what ships"))
    })?;
    let stem = path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
    Scenario::read(&stem, &text).map_err(|error| wrong(name, &error))
}

fn unknown(name: &str) -> String {
    let mut like: Vec<_> = catalog::shipped()
        .map(|(known, _)| (strsim::jaro_winkler(name, known), known))
        .filter(|(likeness, _)| *likeness >= LIKENESS_LEAST)
        .collect();
    like.sort_by(|a, b| b.0.total_cmp(&a.0));
    let guess = like.first().map(|(_, known)| format!(" Did you mean {known}?"));
    let names: Vec<_> = catalog::shipped().map(|(known, _)| known).collect();
    format!(
        "no scenario is called {name:?}.{} There are {}: tidegate drill --list explains them. A \
         file ends in .toml",
        guess.unwrap_or_default(),
        names.join(", ")
    )
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
    fn a_wrong_name_is_told_the_nearest() {
        let told = unknown("lod_sweep");
        assert!(told.contains("Did you mean load_sweep?"), "{told}");
        assert!(!unknown("zzz").contains("mean"));
    }

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
