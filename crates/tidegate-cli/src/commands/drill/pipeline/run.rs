use super::load::Load;
use super::schedule::Schedule;
use super::sender::Sent;
use super::stage::Stage;
use super::truth::Truth;
use crate::commands::drill::bar::Bar;
use crate::commands::drill::made::with_faults;
use crate::commands::drill::options::Options;
use crate::commands::drill::screen::{Board, Screen};
use crate::commands::until_signal::failed;
use crate::failure::Failure;
use hyper::Uri;
use std::time::Duration;
use tidegate::window::Stage as PipelineStage;
use tidegate_sim::pipeline::FlowRecorder;
use tidegate_sim::report::Report;
use tidegate_sim::scenario::{Fault, Mode, PipelineWorld, Scenario};
use tokio::runtime::{Builder, Runtime};

/// A schedule that is worse than this is not the one that was asked for: a record is due within a millisecond, and
/// handed over once in one.
const ERROR_P99_MS_MAX: f64 = 5.0;

/// What a drill left behind.
struct Drilled {
    sent: Vec<Sent>,
    recorder: FlowRecorder,
    schedule: Schedule,
    stopped_at: Option<Duration>,
}

/// Drills the ingestion pipeline: one of its own, or the one that takes frames at the target.
pub fn run(scenario: &Scenario, seed: u64, options: &Options) -> Result<Report, Failure> {
    let Some(world) = scenario.pipeline else {
        return Err(Failure::Usage(format!("{} has no pipeline", scenario.name)));
    };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    match &options.target {
        Some(uri) => given(scenario, &world, seed, (options, uri), &runtime),
        None => own(scenario, &world, seed, options, &runtime),
    }
}

fn own(
    scenario: &Scenario,
    world: &PipelineWorld,
    seed: u64,
    options: &Options,
    runtime: &Runtime,
) -> Result<Report, Failure> {
    let is_made = |fault: &Fault| fault.stage == Some(PipelineStage::Store);
    let why = "only the store of a drill's own ingestion can be slowed and blocked";
    let (scenario, mut notes) = with_faults(scenario, is_made, why);
    let stage = Stage::start(&scenario, world)?;
    let address = stage.view().frames_address().to_string();
    let done = drill(&scenario, world, seed, options, (&address, Some(&stage)), runtime).and_then(
        |drilled| {
            let store = stage.view().store();
            let truth = runtime.block_on(Truth::read(store, &drilled.sent));
            Ok((drilled, truth.map_err(|error| Failure::Runtime(error.to_string()))?))
        },
    );
    notes.extend(stage.end());
    let (drilled, truth) = done?;
    let lost = lost(&drilled.sent, truth.stored);
    Ok(report(&scenario, seed, drilled, (lost, Some(truth.twice)), (None, notes)))
}

fn given(
    scenario: &Scenario,
    world: &PipelineWorld,
    seed: u64,
    (options, uri): (&Options, &Uri),
    runtime: &Runtime,
) -> Result<Report, Failure> {
    let why = "what runs elsewhere is not made to fail";
    let (scenario, mut notes) = with_faults(scenario, |_| false, why);
    let address = uri.authority().map(ToString::to_string).unwrap_or_default();
    let drilled = drill(&scenario, world, seed, options, (&address, None), runtime)?;
    notes.push(
        "Windows, memory and what is stored twice can't be seen from here: what needs them is not judged, and a \
         record is stored when it was acknowledged. How fast the store is, is what the scenario says."
            .to_owned(),
    );
    let acked = drilled.sent.iter().map(|sent| sent.acked).sum();
    let lost = lost(&drilled.sent, acked);
    let target = Some(uri.to_string());
    let mut report = report(&scenario, seed, drilled, (lost, None), (target, notes));
    report.checks.retain(|check| check.found.is_some());
    Ok(report)
}

fn drill(
    scenario: &Scenario,
    world: &PipelineWorld,
    seed: u64,
    options: &Options,
    at: (&str, Option<&Stage>),
    runtime: &Runtime,
) -> Result<Drilled, Failure> {
    runtime.block_on(async {
        let mut load = Load::connect(scenario, world, options, at).await?;
        let bar = Bar::new(options.progress, Duration::from_secs_f64(scenario.duration_s));
        let board = Board::default();
        let shown = board.clone();
        let screen = Screen::start(bar, move || shown.read()).map_err(failed)?;
        load.run(seed, &board).await;
        drop(screen);
        let stopped_at = load.stopped_at;
        let (sent, recorder, schedule) = load.end().await;
        Ok(Drilled { sent, recorder, schedule, stopped_at })
    })
}

/// What nobody has: what was due and not held, and what was taken and is neither durable nor still with its
/// sender.
fn lost(sent: &[Sent], stored: u64) -> u64 {
    let not_held: u64 = sent.iter().map(|sent| sent.not_held).sum();
    let issued: u64 = sent.iter().map(|sent| sent.issued).sum();
    let acked: u64 = sent.iter().map(|sent| sent.acked).sum();
    let rejected: u64 = sent.iter().map(|sent| sent.rejected).sum();
    // What has no ack may be stored or not; what has one must be.
    let unacked = issued - acked - rejected;
    not_held + issued.saturating_sub(stored).saturating_sub(unacked)
}

fn report(
    scenario: &Scenario,
    seed: u64,
    drilled: Drilled,
    (lost, twice): (u64, Option<u64>),
    (target, notes): (Option<String>, Vec<String>),
) -> Report {
    let Drilled { sent, recorder, schedule, stopped_at } = drilled;
    let mut findings = recorder.conclude(lost, twice);
    findings.notes.extend(notes);
    findings.notes.extend(doubts(&sent, &schedule));
    if let Some(stopped_at) = stopped_at {
        let stopped_s = stopped_at.as_secs_f64();
        findings.notes.push(format!(
            "It was stopped after {stopped_s:.1} of {} s: nothing is judged.",
            scenario.duration_s
        ));
    }
    let mut report = Report::new(scenario, Mode::Drill, seed, findings);
    report.target = target;
    report.schedule = Some(schedule.report(sent.len() as u64));
    match stopped_at {
        Some(stopped_at) => report.stopped_after(Some(stopped_at.as_secs_f64())),
        None => report,
    }
}

/// What a reader must know of the senders.
fn doubts(sent: &[Sent], schedule: &Schedule) -> Vec<String> {
    let sum = |of: fn(&Sent) -> u64| sent.iter().map(of).sum::<u64>();
    let mut notes = Vec::new();
    let error_p99_ms = schedule.quantile_ms(0.99);
    if error_p99_ms > ERROR_P99_MS_MAX {
        notes.push(format!(
            "The senders could not keep to their schedule: a hundredth was {error_p99_ms:.1} ms late or later."
        ));
    }
    let told = [
        (sum(|sent| sent.not_held), "records were due that no sender had room for: they are lost"),
        (sum(|sent| sent.rejected), "records were refused for good"),
        (sum(|sent| sent.held), "records were not acknowledged in time and are still at senders"),
        (sum(|sent| sent.resent), "records were sent again after a connection broke"),
    ];
    let told = told.into_iter().filter(|(count, _)| *count > 0);
    notes.extend(told.map(|(count, what)| format!("{count} {what}.")));
    let failures = sent.iter().filter_map(|sent| sent.failure.as_ref());
    notes.extend(failures.map(|failure| format!("A sender ended: {failure}.")));
    notes
}
