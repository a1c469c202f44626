//! Scenario by the name of a built-in one or by the path of a file.

use crate::failure::Failure;
use crate::terminal::aligned;
use std::fs;
use std::path::Path;
use tidegate::suggestion::nearest;
use tidegate_sim::catalog;
use tidegate_sim::scenario::{Mode, Scenario, World};
use tidegate_sim::shell::word;

/// Reads the scenario with this name or path.
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
        Failure::Usage(format!("can't read {name}: {error}; {list} shows the built-in scenarios"))
    })?;
    let stem = path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
    Scenario::read(&stem, &text).map_err(|error| wrong(&error))
}

/// Name as a shell word; a leading dash gets `./`, or it would be taken for a flag.
pub fn shell_word(name: &str) -> String {
    match name.starts_with('-') {
        true => word(&format!("./{name}")),
        false => word(name),
    }
}

/// Table of built-in scenarios; for drills with their duration.
pub fn list(mode: Mode) -> String {
    let line = |name: &str, world: &str, durations: [String; 2], about: &str| match mode {
        Mode::Drill => {
            let [whole, short] = durations;
            vec![name.to_owned(), world.to_owned(), whole, short, about.to_owned()]
        }
        Mode::Sim => vec![name.to_owned(), world.to_owned(), about.to_owned()],
    };
    let durations = ["SECONDS", "SHORT"].map(str::to_owned);
    let mut lines = vec![line("NAME", "WORLD", durations, "PURPOSE")];
    for (name, text) in catalog::shipped() {
        let Ok(scenario) = Scenario::read(name, text) else { continue };
        let world = match scenario.world() {
            Some(World::Gateway(_)) => "gateway",
            Some(World::Pipeline(_)) => "pipeline",
            Some(World::Executors(_)) => "executors",
            None => "nothing",
        };
        let short = scenario.short.map(|_| drill_s(&scenario.shortened()).to_string());
        let durations = [drill_s(&scenario).to_string(), short.unwrap_or("–".to_owned())];
        lines.push(line(name, world, durations, &scenario.about));
    }
    aligned(&lines, |column| mode == Mode::Drill && (column == 2 || column == 3))
}

/// Duration of a drill in seconds: executors run it slower, once for each placement.
fn drill_s(scenario: &Scenario) -> f64 {
    let times = match scenario.world() {
        Some(World::Executors(world)) => world.placements.len() as f64 * world.drill_slower,
        _ => 1.0,
    };
    scenario.duration_s * times
}

fn unknown(name: &str, mode: Mode) -> String {
    let names: Vec<_> = catalog::shipped().map(|(known, _)| known).collect();
    let guess = nearest(name, names.iter().copied()).map(|near| format!(" Did you mean {near}?"));
    format!(
        "there is no scenario {name:?}.{} Built-in scenarios: {}; {} describes them. A file ends in .toml",
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
    fn an_unknown_name_gets_the_nearest_one() {
        let message = unknown("lod_sweep", Mode::Drill);
        assert!(message.contains("Did you mean load_sweep?"), "{message}");
        assert!(message.contains("tidegate drill --list"), "{message}");
        assert!(unknown("lod_sweep", Mode::Sim).contains("tidegate sim --list"));
        assert!(!unknown("zzz", Mode::Sim).contains("mean"));
    }

    #[test]
    fn a_list_for_drills_has_durations() {
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
