use super::crew::Crew;
use super::progress::Progress;
use super::times::Times;
use super::{ours, seed_loop};
use crate::commands::drill::bar::Bar;
use crate::commands::drill::options::Options;
use crate::commands::drill::schedule;
use crate::commands::drill::screen::{Board, Screen};
use crate::commands::until_signal::failed;
use crate::failure::Failure;
use std::sync::Arc;
use std::time::Duration;
use tidegate_sim::executors::{Policy, findings};
use tidegate_sim::report::{Report, ScheduleReport};
use tidegate_sim::scenario::{ExecutorsWorld, FaultKind, Mode, Scenario};

/// For each executor in this process: its port, and connections to it from both sides.
const DESCRIPTORS_AN_EXECUTOR: u64 = 16;

/// Drills executors, by each placement in turn.
pub fn run(scenario: &Scenario, seed: u64, options: &Options) -> Result<Report, Failure> {
    let Some(world) = &scenario.executors else {
        return Err(Failure::Usage(format!("{} has no executors", scenario.name)));
    };
    if options.target.is_some() {
        let text = "executors are drilled on a stage of their own: leave --target out";
        return Err(Failure::Usage(text.to_owned()));
    }
    let executors = u64::from(world.executors);
    let needed = 2 * options.connections as u64 + executors * DESCRIPTORS_AN_EXECUTOR + 1024;
    let few_files = schedule::open_files(needed);
    let times = Times {
        slower: world.drill_slower,
        duration_s: scenario.duration_s,
        task_s: world.task_ms / 1e3,
    };
    let total = times.load() * world.placements.len() as u32;
    let bar = Bar::new(options.progress, total);
    let mut notes = notes(scenario, world);
    notes.extend(few_files);
    notes.iter().for_each(|note| bar.say(note));
    let mut runs = Vec::new();
    let mut schedules = Vec::new();
    let mut before = Duration::ZERO;
    let board = Board::default();
    let shown = board.clone();
    let screen = Screen::start(bar, move || shown.read()).map_err(failed)?;
    for policy in &world.placements {
        let crew = Arc::new(Crew::start(world.executors, times.task())?);
        let progress = Progress::new(*policy, board.clone(), before);
        let stage = (&crew, progress, options);
        runs.push(match policy {
            Policy::Seed => seed_loop::run(scenario, seed, times, stage)?,
            Policy::Ours(placement) => {
                let (run, schedule) = ours::run(scenario, seed, *placement, times, stage)?;
                schedules.push(schedule::report(&schedule));
                run
            }
        });
        before += times.load();
        if options.stop.is_asked() {
            break;
        }
    }
    drop(screen);
    let mut found = findings(scenario, &runs);
    found.notes.extend(notes);
    let stopped = options.stop.is_asked();
    if stopped {
        found.notes.push("It was stopped before its end: nothing is judged.".to_owned());
    }
    let mut report = Report::new(scenario, Mode::Drill, seed, found);
    report.schedule = ScheduleReport::worst(schedules);
    Ok(if stopped { report.stopped_after(None) } else { report })
}

fn notes(scenario: &Scenario, world: &ExecutorsWorld) -> Vec<String> {
    let mut notes = Vec::new();
    if world.drill_slower > 1.0 {
        notes.push(format!(
            "All was {} times as slow as the scenario says; times are told as if it had not been.",
            world.drill_slower
        ));
    }
    let skipped = |kind| scenario.faults.iter().any(|fault| fault.kind == kind);
    if skipped(FaultKind::Loss) || skipped(FaultKind::Delay) {
        notes.push(
            "Messages are neither lost nor delayed: those faults are simulated only.".to_owned(),
        );
    }
    if world.managers > 1 {
        notes.push(format!("There is one manager here, not {}.", world.managers));
    }
    if skipped(FaultKind::ManagerDead) {
        notes.push(
            "The manager is in this process: it is shut down without waiting for what it has sent, not killed. \
             Who hands a task in meanwhile tries again every 250 ms, and each try has no connection. The \
             seed's loop has no manager."
                .to_owned(),
        );
    }
    notes
}
