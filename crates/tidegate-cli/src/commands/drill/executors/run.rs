use super::pool::ExecutorPool;
use super::progress::Progress;
use super::times::Times;
use super::{seed_loop, submissions};
use crate::commands::drill::options::Options;
use crate::commands::drill::progress::{Bar, ProgressDisplay, ProgressState};
use crate::commands::drill::schedule;
use crate::failure::Failure;
use std::sync::Arc;
use std::time::Duration;
use tidegate_sim::executors::{Policy, findings};
use tidegate_sim::report::{Report, ScheduleReport};
use tidegate_sim::scenario::{ExecutorsWorld, FaultKind, Mode, Scenario};

/// Files of an executor in this process: its port, and both ends of connections to it.
const FILES_PER_EXECUTOR: u64 = 16;

/// Drills executors with each placement in turn.
pub fn run(scenario: &Scenario, seed: u64, options: &Options) -> Result<Report, Failure> {
    let Some(world) = &scenario.executors else {
        return Err(Failure::Usage(format!("{} has no executors", scenario.name)));
    };
    if options.target.is_some() {
        let text = "executors are drilled on a test bed only: omit --target";
        return Err(Failure::Usage(text.to_owned()));
    }
    let executors = u64::from(world.executors);
    let needed = 2 * options.connections as u64 + executors * FILES_PER_EXECUTOR + 1024;
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
    let state = ProgressState::default();
    let shown = state.clone();
    let display = ProgressDisplay::start(bar, move || shown.read()).map_err(Failure::runtime)?;
    for policy in &world.placements {
        let pool = Arc::new(ExecutorPool::start(world.executors, times.task())?);
        let progress = Progress::new(*policy, state.clone(), before);
        let parts = (&pool, progress, options);
        runs.push(match policy {
            Policy::Seed => seed_loop::run(scenario, seed, times, parts)?,
            Policy::Ours(placement) => {
                let (run, schedule) = submissions::run(scenario, seed, *placement, times, parts)?;
                schedules.push(schedule::report(&schedule));
                run
            }
        });
        before += times.load();
        if options.stop.is_requested() {
            break;
        }
    }
    drop(display);
    let mut found = findings(scenario, &runs);
    found.notes.extend(notes);
    let stopped = options.stop.is_requested();
    if stopped {
        found.notes.push("Stopped before its end: no expectation is judged.".to_owned());
    }
    let mut report = Report::new(scenario, Mode::Drill, seed, found);
    report.schedule = ScheduleReport::worst(schedules);
    Ok(if stopped { report.stopped_after(None) } else { report })
}

fn notes(scenario: &Scenario, world: &ExecutorsWorld) -> Vec<String> {
    let mut notes = Vec::new();
    if world.drill_slower > 1.0 {
        notes.push(format!(
            "The drill ran {} times slower than the scenario; times are scaled back.",
            world.drill_slower
        ));
    }
    let skipped = |kind| scenario.faults.iter().any(|fault| fault.kind == kind);
    if skipped(FaultKind::Loss) || skipped(FaultKind::Delay) {
        notes.push(
            "Faults loss and delay are not injected: only the simulator has them.".to_owned(),
        );
    }
    if world.managers > 1 {
        notes.push(format!("The drill has one manager instead of {}.", world.managers));
    }
    if skipped(FaultKind::ManagerDead) {
        notes.push(
            "The manager runs in this process: it is shut down without a drain, not killed. Meanwhile clients \
             retry a submission every 250 ms and can't connect. The seed's loop has no manager."
                .to_owned(),
        );
    }
    notes
}
