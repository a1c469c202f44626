use super::answers::Names;
use super::ask;
use super::faults::{Timeline, Unset};
use super::load::{Load, Terms};
use super::requests::Requests;
use super::stage::Stage;
use crate::commands::drill::bar::Bar;
use crate::commands::drill::made::{depends, with_faults};
use crate::commands::drill::options::Options;
use crate::commands::drill::schedule;
use crate::commands::until_signal::failed;
use crate::drill_flags::ProtocolFlag;
use crate::failure::Failure;
use hyper::Uri;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_server::generator::{self, GeneratorConfig, Protocol, ScheduleStats};
use tidegate_sim::report::Report;
use tidegate_sim::scenario::{Fault, Mode, Scenario, What};

/// Over HTTP/2, requests at once on a connection.
const STREAMS_MAX: usize = 100;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long answers are waited for when nothing more is due.
const GRACE: Duration = Duration::from_secs(10);
/// What is due so soon is waited for awake where the generator is not on one stage with what it drills.
const AWAKE_FOR: Duration = Duration::from_micros(100);

/// Files that are open besides connections of the load.
const OTHER_FILES: u64 = 1024;

/// What is drilled, and what is known of it.
struct Target {
    uri: Uri,
    workers: Vec<Uri>,
    names: Names,
    tokens: BTreeMap<String, String>,
    notes: Vec<String>,
}

/// Drills a gateway, or whatever else answers at the target.
pub fn run(scenario: &Scenario, seed: u64, options: &Options) -> Result<Report, Failure> {
    let connections = options.connections as u64;
    let Some(uri) = &options.target else {
        // Each request may have four ends in this process: ours, the gateway's two, and a worker's.
        let few_files = schedule::open_files(4 * connections + OTHER_FILES);
        let stage = Stage::start(scenario, options.connections)?;
        let mut target = Target::own(&stage, scenario)?;
        target.notes.extend(few_files);
        let drilled = drill(scenario, seed, options, target);
        stage.end();
        return drilled;
    };
    let workers = options.workers.len();
    let why = match workers {
        0 => "name the target's mocks with --workers",
        _ => "not all of its workers are among those that --workers names",
    };
    let is_made =
        |fault: &Fault| workers > 0 && fault.at.iter().all(|it| usize::from(*it) < workers);
    let (scenario, unmade) = with_faults(scenario, is_made, why);
    let mut target = Target::given(uri, &scenario, options)?;
    target.notes.splice(..0, unmade);
    target.notes.extend(schedule::open_files(connections + OTHER_FILES));
    drill(&scenario, seed, options, target)
}

fn drill(
    scenario: &Scenario,
    seed: u64,
    options: &Options,
    target: Target,
) -> Result<Report, Failure> {
    let requests = Requests::new(scenario, &target.uri);
    let templates = requests.templates(scenario, options, &target.tokens)?;
    let faults = match scenario.faults.is_empty() || target.workers.is_empty() {
        true => None,
        false => Some(Timeline::new(scenario, target.workers).map_err(failed)?),
    };
    let terms = Terms { requests, names: target.names, stop: options.stop.clone(), faults };
    let load = Load::new(scenario, seed, terms);
    let total = Duration::from_secs_f64(scenario.duration_s);
    let bar = Bar::new(options.progress, total);
    target.notes.iter().for_each(|note| bar.say(note));
    let screen = load.live.screen(bar, scenario.phase_spans()).map_err(failed)?;
    let config = GeneratorConfig {
        target: target.uri.clone(),
        protocol: match options.protocol {
            ProtocolFlag::H1 => Protocol::Http1,
            ProtocolFlag::H2 => Protocol::Http2,
        },
        connections_max: options.connections,
        streams_max: STREAMS_MAX,
        connect_timeout: CONNECT_TIMEOUT,
        grace: GRACE,
        // On a stage of its own the generator would take that time from who it drills.
        awake_for: options.target.as_ref().map_or(Duration::ZERO, |_| AWAKE_FOR),
    };
    let (mut load, schedule) = generator::run(config, templates, load).map_err(failed)?;
    drop(screen);
    let unset = load.end_faults();
    if !load.answered && load.stopped_at.is_none() {
        let text = format!("{} answered nothing at all", target.uri);
        return Err(Failure::Runtime(text));
    }
    let given = options.target.as_ref().map(ToString::to_string);
    let said = Said { target: given, notes: target.notes, unset };
    Ok(report(scenario, seed, load, &schedule, said))
}

/// What is told beside figures.
struct Said {
    /// Where it was drilled, unless that was made for it.
    target: Option<String>,
    notes: Vec<String>,
    /// Faults that were to be made and were not.
    unset: Unset,
}

fn report(scenario: &Scenario, seed: u64, load: Load, stats: &ScheduleStats, said: Said) -> Report {
    let stopped_s = load.stopped_at.map(|at| at.as_secs_f64());
    let book = match stopped_s {
        Some(stopped_s) => load.book.cut(stopped_s),
        None => load.book,
    };
    let mut findings = book.conclude();
    findings.figure(What::ScheduleErrorP99Ms, "all", None, stats.error_p99_ms);
    findings.notes.extend(said.notes);
    findings.notes.extend(said.unset.notes);
    if !said.unset.faults.is_empty() {
        findings.figures.retain(|figure| figure.what != What::RecoveryS);
    }
    if let Some(stopped_s) = stopped_s {
        findings.notes.push(format!(
            "It was stopped after {stopped_s:.1} of {} s: nothing is judged, and what was under way then is not \
             counted.",
            scenario.duration_s
        ));
    }
    let is_made = |fault: &&Fault| !said.unset.nowhere.contains(fault);
    let faults = scenario.faults.iter().filter(is_made).cloned().collect();
    let made = Scenario { faults, ..scenario.clone() };
    let mut report = Report::new(&made, Mode::Drill, seed, findings);
    report.target = said.target;
    // What was to be measured under a fault was not.
    for check in &mut report.checks {
        if depends(scenario, &check.expected, &said.unset.faults) {
            (check.found, check.holds) = (None, false);
        }
    }
    report.schedule = Some(schedule::report(stats));
    match stopped_s {
        Some(stopped_s) => report.stopped_after(Some(stopped_s)),
        None => report,
    }
}

// === impl Target ===

impl Target {
    fn own(stage: &Stage, scenario: &Scenario) -> Result<Self, Failure> {
        let workers = stage.workers()?;
        let names = Names::new((0..workers.len()).map(|number| format!("worker-{number}")));
        let (uri, tokens) = (stage.target()?, Stage::tokens(scenario));
        Ok(Self { uri, workers, names, tokens, notes: Vec::new() })
    }

    fn given(uri: &Uri, scenario: &Scenario, options: &Options) -> Result<Self, Failure> {
        ask::connect(uri)
            .map_err(|error| Failure::Runtime(format!("can't reach {uri}: {error}")))?;
        let mut notes = Vec::new();
        let expected = scenario.workers.map_or(0, |workers| usize::from(workers.count));
        if !options.workers.is_empty() && options.workers.len() != expected {
            notes.push(format!(
                "The scenario has {expected} workers, and {} were named.",
                options.workers.len()
            ));
        }
        let tenants = scenario.gateway().tenants;
        for tenant in tenants.iter().filter(|tenant| !options.tokens.contains_key(&tenant.name)) {
            let name = &tenant.name;
            notes.push(format!(
                "Requests of {name} have no token: give it as --token {name}=TOKEN."
            ));
        }
        notes.push(
            "Capacity is what the scenario's workers would have; the target's may differ."
                .to_owned(),
        );
        let names = options.workers.iter().map(name_of).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            uri: uri.clone(),
            workers: options.workers.clone(),
            names: Names::new(names),
            tokens: options.tokens.clone(),
            notes,
        })
    }
}

/// What a worker calls itself; one that is no mock can't be made to fail.
fn name_of(worker: &Uri) -> Result<String, Failure> {
    let reply = ask::ask(worker, "/mock/fault", None)
        .map_err(|error| Failure::Runtime(format!("can't reach the worker {worker}: {error}")))?;
    match reply {
        ask::Reply { status: 200, mock: Some(name), .. } => Ok(name),
        ask::Reply { mock: Some(_), .. } => Err(Failure::Runtime(format!(
            "the worker {worker} takes no faults: start it as tidegate mock --faults"
        ))),
        ask::Reply { mock: None, .. } => Err(Failure::Runtime(format!(
            "the worker {worker} is no mock: faults can only be made in tidegate mock --faults"
        ))),
    }
}
