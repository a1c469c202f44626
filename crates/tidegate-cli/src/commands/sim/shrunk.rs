use super::command;
use super::flags::SimFlags;
use super::scenario::SelectedScenario;
use serde::Serialize;
use std::fmt;
use tidegate_sim::shrink::shrink;
use tidegate_sim::{Violation, simulate};

/// Violation of an invariant, the shortest scenario that reproduces it, and the command for it.
#[derive(Debug, Serialize)]
pub struct ShrunkReplay {
    /// The scenario's name.
    scenario: String,
    seed: u64,
    violation: Violation,
    /// `None` if nothing could be removed.
    replay: Option<Shortest>,
    command: String,
}

/// Shortest scenario that still violates the same invariant.
#[derive(Debug, Serialize)]
struct Shortest {
    /// Runs that the search took.
    tries: u32,
    duration_s: f64,
    classes: usize,
    /// `None` for scenarios without upstreams.
    upstreams: Option<u16>,
    faults: usize,
    violation: Violation,
}

// === impl ShrunkReplay ===

impl ShrunkReplay {
    /// Searches the shortest scenario that reproduces the violation.
    pub fn find(
        selected: &SelectedScenario,
        seed: u64,
        violation: Violation,
        flags: &SimFlags,
    ) -> Self {
        let run = |smaller: &_| simulate(smaller, seed, flags.plant).err();
        let found = shrink(&selected.original, &selected.edits, &violation, run);
        let smaller = &found.scenario;
        let shortest = Shortest {
            tries: found.tries,
            duration_s: smaller.duration_s,
            classes: smaller.classes.len(),
            upstreams: smaller.upstreams.map(|upstreams| upstreams.count),
            faults: smaller.faults.len(),
            violation: found.violation,
        };
        Self {
            scenario: selected.scenario.name.clone(),
            seed,
            violation,
            replay: (found.edits != selected.edits).then_some(shortest),
            command: command::again(flags, seed, &found.edits),
        }
    }
}

impl fmt::Display for ShrunkReplay {
    /// The violation, the shortest replay, and the command on the last line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "VIOLATION with seed {}, {}", self.seed, self.violation)?;
        if let Some(shortest) = &self.replay {
            writeln!(f, "{shortest}\n  {}", shortest.violation)?;
        }
        writeln!(f, "replay with:\n  {}", self.command)
    }
}

// === impl Shortest ===

impl fmt::Display for Shortest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shortest of {} replays: {} s", self.tries, self.duration_s)?;
        if let Some(upstreams) = self.upstreams {
            write!(f, ", {}", count(self.classes, "class", "classes"))?;
            write!(f, ", {}", count(usize::from(upstreams), "upstream", "upstreams"))?;
        }
        write!(f, ", {}", count(self.faults, "fault", "faults"))
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
