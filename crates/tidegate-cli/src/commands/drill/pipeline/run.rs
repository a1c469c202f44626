use super::ground_truth::GroundTruth;
use super::load::Load;
use super::schedule::Schedule;
use super::sender::Sent;
use super::test_bed::TestBed;
use crate::commands::drill::feasible_faults::with_faults;
use crate::commands::drill::options::Options;
use crate::commands::drill::progress::{Bar, ProgressDisplay, ProgressState};
use crate::failure::Failure;
use hyper::Uri;
use std::time::Duration;
use tidegate::window::Stage;
use tidegate_sim::pipeline::FlowRecorder;
use tidegate_sim::report::Report;
use tidegate_sim::scenario::{Fault, Mode, PipelineWorld, Scenario};
use tokio::runtime::{Builder, Runtime};

/// Largest p99 schedule error of a valid drill: records are due and sent once per millisecond.
const ERROR_P99_MS_MAX: f64 = 5.0;

/// Results of the load.
struct LoadResult {
    sent: Vec<Sent>,
    recorder: FlowRecorder,
    schedule: Schedule,
    stopped_at: Option<Duration>,
}

/// Drills the ingestion pipeline of a test bed, or the ingest server at the target.
pub fn run(scenario: &Scenario, seed: u64, options: &Options) -> Result<Report, Failure> {
    let Some(world) = scenario.pipeline else {
        return Err(Failure::Usage(format!("{} has no pipeline", scenario.name)));
    };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::runtime)?;
    match &options.target {
        Some(uri) => on_target(scenario, &world, seed, (options, uri), &runtime),
        None => on_test_bed(scenario, &world, seed, options, &runtime),
    }
}

fn on_test_bed(
    scenario: &Scenario,
    world: &PipelineWorld,
    seed: u64,
    options: &Options,
    runtime: &Runtime,
) -> Result<Report, Failure> {
    let is_feasible = |fault: &Fault| fault.stage == Some(Stage::Store);
    let why = "a drill can only slow down and block the store of its test bed";
    let (scenario, mut notes) = with_faults(scenario, is_feasible, why);
    let test_bed = TestBed::start(&scenario, world)?;
    let address = test_bed.view().frames_address().to_string();
    let done = drill(&scenario, world, seed, options, (&address, Some(&test_bed)), runtime)
        .and_then(|result| {
            let store = test_bed.view().store();
            let truth = runtime.block_on(GroundTruth::read(store, &result.sent));
            Ok((result, truth.map_err(|error| Failure::Runtime(error.to_string()))?))
        });
    notes.extend(test_bed.end());
    let (result, truth) = done?;
    let lost = lost(&result.sent, truth.stored);
    Ok(report(&scenario, seed, result, (lost, Some(truth.twice)), (None, notes)))
}

fn on_target(
    scenario: &Scenario,
    world: &PipelineWorld,
    seed: u64,
    (options, uri): (&Options, &Uri),
    runtime: &Runtime,
) -> Result<Report, Failure> {
    let why = "a drill injects no faults into a target";
    let (scenario, mut notes) = with_faults(scenario, |_| false, why);
    let address = uri.authority().map(ToString::to_string).unwrap_or_default();
    let result = drill(&scenario, world, seed, options, (&address, None), runtime)?;
    notes.push(
        "Windows, memory and duplicates of the target are unknown: expectations about them are not judged, and \
         an acknowledged record counts as stored. The store's rate is that of the scenario."
            .to_owned(),
    );
    let acked = result.sent.iter().map(|sent| sent.acked).sum();
    let lost = lost(&result.sent, acked);
    let target = Some(uri.to_string());
    let mut report = report(&scenario, seed, result, (lost, None), (target, notes));
    report.checks.retain(|check| check.found.is_some());
    Ok(report)
}

fn drill(
    scenario: &Scenario,
    world: &PipelineWorld,
    seed: u64,
    options: &Options,
    at: (&str, Option<&TestBed>),
    runtime: &Runtime,
) -> Result<LoadResult, Failure> {
    runtime.block_on(async {
        let mut load = Load::connect(scenario, world, options, at).await?;
        let bar = Bar::new(options.progress, Duration::from_secs_f64(scenario.duration_s));
        let state = ProgressState::default();
        let shown = state.clone();
        let display =
            ProgressDisplay::start(bar, move || shown.read()).map_err(Failure::runtime)?;
        load.run(seed, &state).await;
        drop(display);
        let stopped_at = load.stopped_at;
        let (sent, recorder, schedule) = load.end().await;
        Ok(LoadResult { sent, recorder, schedule, stopped_at })
    })
}

/// Lost records: dropped by a sender, or accepted by a client and neither stored nor still with it.
fn lost(sent: &[Sent], stored: u64) -> u64 {
    let dropped: u64 = sent.iter().map(|sent| sent.dropped).sum();
    let issued: u64 = sent.iter().map(|sent| sent.issued).sum();
    let acked: u64 = sent.iter().map(|sent| sent.acked).sum();
    let rejected: u64 = sent.iter().map(|sent| sent.rejected).sum();
    // A record without an ack may or may not be stored; one with an ack must be.
    let unacked = issued - acked - rejected;
    dropped + issued.saturating_sub(stored).saturating_sub(unacked)
}

fn report(
    scenario: &Scenario,
    seed: u64,
    result: LoadResult,
    (lost, twice): (u64, Option<u64>),
    (target, notes): (Option<String>, Vec<String>),
) -> Report {
    let LoadResult { sent, recorder, schedule, stopped_at } = result;
    let mut findings = recorder.conclude(lost, twice);
    findings.notes.extend(notes);
    findings.notes.extend(caveats(&sent, &schedule));
    if let Some(stopped_at) = stopped_at {
        let stopped_s = stopped_at.as_secs_f64();
        findings.notes.push(format!(
            "Stopped after {stopped_s:.1} of {} s: no expectation is judged.",
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

/// Notes about senders that qualify the figures.
fn caveats(sent: &[Sent], schedule: &Schedule) -> Vec<String> {
    let sum = |of: fn(&Sent) -> u64| sent.iter().map(of).sum::<u64>();
    let mut notes = Vec::new();
    let error_p99_ms = schedule.quantile_ms(0.99);
    if error_p99_ms > ERROR_P99_MS_MAX {
        notes.push(format!(
            "The senders missed their schedule: 1 % of records was at least {error_p99_ms:.1} ms late."
        ));
    }
    let counts = [
        (sum(|sent| sent.dropped), "records were dropped because their sender's queue was full"),
        (sum(|sent| sent.rejected), "records were rejected permanently"),
        (
            sum(|sent| sent.unacked_total),
            "records were not acknowledged in time and are still with their senders",
        ),
        (sum(|sent| sent.resent), "records were sent again after a connection broke"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    notes.extend(counts.map(|(count, what)| format!("{count} {what}.")));
    let failures = sent.iter().filter_map(|sent| sent.failure.as_ref());
    notes.extend(failures.map(|failure| format!("A sender ended: {failure}.")));
    notes
}
