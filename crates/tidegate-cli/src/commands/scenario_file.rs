//! Which scenario is meant by what was typed: one that ships, by its name, or a file.

use super::table::aligned;
use crate::failure::Failure;
use std::fs;
use std::path::Path;
use tidegate_sim::catalog;
use tidegate_sim::scenario::{Mode, Scenario, World};
use tidegate_sim::shell::word;

/// Names that are as unlike as this are not meant.
const LIKENESS_LEAST: f64 = 0.7;

/// The scenario that is called so or lies there, as it is.
pub fn read(name: &str, mode: Mode) -> Result<Scenario, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::Usage(format!("{name}: {error}"));
    if let Some(found) = catalog::find(name) {
        return found.map_err(|error| wrong(&error));
    }
    let path = Path::new(name);
    let is_file = path.extension().is_some() || name.contains('/') || path.exists();
    if !is_file {
        return Err(Failure::Usage(unknown(name, mode)));
    }
    let text = fs::read_to_string(path).map_err(|error| {
        let list = list_command(mode);
        Failure::Usage(format!("can't read {name}: {error}; {list} has what ships"))
    })?;
    let stem = path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
    Scenario::read(&stem, &text).map_err(|error| wrong(&error))
}

/// What was typed, as it is typed again. A file whose name begins with a dash would be taken for a flag.
pub fn typed(name: &str) -> String {
    match name.starts_with('-') {
        true => word(&format!("./{name}")),
        false => word(name),
    }
}

/// What ships, each in a line. Where somebody has to wait for it, with how long; virtual time is not waited for.
pub fn list(mode: Mode) -> String {
    let line = |name: &str, world: &str, waits: [String; 2], about: &str| match mode {
        Mode::Drill => {
            let [whole, short] = waits;
            vec![name.to_owned(), world.to_owned(), whole, short, about.to_owned()]
        }
        Mode::Sim => vec![name.to_owned(), world.to_owned(), about.to_owned()],
    };
    let waits = ["SECONDS", "SHORT"].map(str::to_owned);
    let mut lines = vec![line("NAME", "WORLD", waits, "WHAT IT IS FOR")];
    for (name, text) in catalog::shipped() {
        let Ok(scenario) = Scenario::read(name, text) else { continue };
        let world = match scenario.world() {
            Some(World::Gateway(_)) => "gateway",
            Some(World::Pipeline(_)) => "pipeline",
            Some(World::Executors(_)) => "executors",
            None => "nothing",
        };
        let short = scenario.short.map(|_| waited_s(&scenario.shortened()).to_string());
        let waits = [waited_s(&scenario).to_string(), short.unwrap_or("–".to_owned())];
        lines.push(line(name, world, waits, &scenario.about));
    }
    aligned(&lines, |column| mode == Mode::Drill && (column == 2 || column == 3))
}

/// How long a drill of it takes, in seconds: executors run the whole of it for each placement, slowed down.
fn waited_s(scenario: &Scenario) -> f64 {
    let times = match scenario.world() {
        Some(World::Executors(world)) => world.placements.len() as f64 * world.drill_slower,
        _ => 1.0,
    };
    scenario.duration_s * times
}

fn unknown(name: &str, mode: Mode) -> String {
    let mut like: Vec<_> = catalog::shipped()
        .map(|(known, _)| (strsim::jaro_winkler(name, known), known))
        .filter(|(likeness, _)| *likeness >= LIKENESS_LEAST)
        .collect();
    like.sort_by(|a, b| b.0.total_cmp(&a.0));
    let guess = like.first().map(|(_, known)| format!(" Did you mean {known}?"));
    let names: Vec<_> = catalog::shipped().map(|(known, _)| known).collect();
    format!(
        "no scenario is called {name:?}.{} There are {}: {} explains them. A file ends in .toml",
        guess.unwrap_or_default(),
        names.join(", "),
        list_command(mode)
    )
}

fn list_command(mode: Mode) -> &'static str {
    match mode {
        Mode::Drill => "tidegate drill --list",
        Mode::Sim => "tidegate sim --list",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_told_the_nearest() {
        let told = unknown("lod_sweep", Mode::Drill);
        assert!(told.contains("Did you mean load_sweep?"), "{told}");
        assert!(told.contains("tidegate drill --list"), "{told}");
        assert!(unknown("lod_sweep", Mode::Sim).contains("tidegate sim --list"));
        assert!(!unknown("zzz", Mode::Sim).contains("mean"));
    }

    #[test]
    fn a_list_for_drills_has_what_is_waited_for() {
        let listed = list(Mode::Drill);
        let line = |name: &str| listed.lines().find(|line| line.starts_with(name)).unwrap();
        let cells: Vec<_> = line("executors_3x3 ").split_whitespace().take(4).collect();
        // Six placements, each in the scenario's own time.
        assert_eq!(cells, ["executors_3x3", "executors", "7200", "144"]);
        assert!(line("load_sweep ").contains(" 140 "));
        let simulated = list(Mode::Sim);
        assert!(!simulated.contains("SECONDS") && !simulated.contains("7200"), "{simulated}");
        assert_eq!(simulated.lines().count(), listed.lines().count());
    }
}
