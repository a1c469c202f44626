use super::blocking_http;
use super::faults::{Timeline, UnsetFaults};
use super::load::{Load, LoadContext};
use super::requests::Requests;
use super::test_bed::TestBed;
use super::verdict::UpstreamNames;
use crate::commands::drill::feasible_faults::{depends, with_faults};
use crate::commands::drill::flags::ProtocolFlag;
use crate::commands::drill::options::Options;
use crate::commands::drill::progress::Bar;
use crate::commands::drill::schedule;
use crate::failure::Failure;
use hyper::Uri;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_sim::report::Report;
use tidegate_sim::scenario::{Fault, Mode, Scenario, What};
use tidegate_testkit::generator::{self, GeneratorConfig, Protocol, ScheduleStats};

/// Concurrent streams of an HTTP/2 connection.
const STREAMS_MAX: usize = 100;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Wait for responses after the end of the load.
const GRACE: Duration = Duration::from_secs(10);
/// The generator busy-waits when the next send is nearer than this, unless it shares the process with the target.
const BUSY_WAIT: Duration = Duration::from_micros(100);

/// Open files besides the connections of the load.
const OTHER_FILES: u64 = 1024;

/// Target of a drill: addresses, tokens and notes for the report.
struct Target {
    uri: Uri,
    upstreams: Vec<Uri>,
    names: UpstreamNames,
    tokens: BTreeMap<String, String>,
    notes: Vec<String>,
}

/// Drills a gateway on a test bed, or the HTTP service at the target.
pub fn run(scenario: &Scenario, seed: u64, options: &Options) -> Result<Report, Failure> {
    let connections = options.connections as u64;
    let Some(uri) = &options.target else {
        // A request may hold four sockets of this process: the generator's, two of the gateway, one of an
        // upstream.
        let few_files = schedule::open_files(4 * connections + OTHER_FILES);
        let test_bed = TestBed::start(scenario, options.connections)?;
        let mut target = Target::own(&test_bed, scenario)?;
        target.notes.extend(few_files);
        let report = drill(scenario, seed, options, target);
        test_bed.end();
        return report;
    };
    let upstreams = options.upstreams.len();
    let why = match upstreams {
        0 => "name the target's mocks with --upstreams",
        _ => "--upstreams does not name all upstreams that it hits",
    };
    let is_feasible =
        |fault: &Fault| upstreams > 0 && fault.at.iter().all(|it| usize::from(*it) < upstreams);
    let (scenario, notes_infeasible) = with_faults(scenario, is_feasible, why);
    let mut target = Target::given(uri, &scenario, options)?;
    target.notes.splice(..0, notes_infeasible);
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
    let faults = match scenario.faults.is_empty() || target.upstreams.is_empty() {
        true => None,
        false => Some(Timeline::new(scenario, target.upstreams).map_err(Failure::runtime)?),
    };
    let context = LoadContext { requests, names: target.names, stop: options.stop.clone(), faults };
    let load = Load::new(scenario, seed, context);
    let total = Duration::from_secs_f64(scenario.duration_s);
    let bar = Bar::new(options.progress, total);
    target.notes.iter().for_each(|note| bar.say(note));
    let display = load.live_stats.display(bar, scenario.phase_spans()).map_err(Failure::runtime)?;
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
        // On a test bed, busy-waiting would take CPU time from the gateway.
        busy_wait: options.target.as_ref().map_or(Duration::ZERO, |_| BUSY_WAIT),
    };
    let (mut load, schedule) = generator::run(config, templates, load).map_err(Failure::runtime)?;
    drop(display);
    let unset = load.end_faults();
    if !load.answered && load.stopped_at.is_none() {
        let text = format!("no response from {}", target.uri);
        return Err(Failure::Runtime(text));
    }
    let given = options.target.as_ref().map(ToString::to_string);
    let context = ReportContext { target: given, notes: target.notes, unset };
    Ok(report(scenario, seed, load, &schedule, context))
}

/// Contents of the report besides figures.
struct ReportContext {
    /// URL of the target; `None` for a test bed.
    target: Option<String>,
    notes: Vec<String>,
    /// Faults that could not be set.
    unset: UnsetFaults,
}

fn report(
    scenario: &Scenario,
    seed: u64,
    load: Load,
    stats: &ScheduleStats,
    context: ReportContext,
) -> Report {
    let stopped_s = load.stopped_at.map(|at| at.as_secs_f64());
    let recorder = match stopped_s {
        Some(stopped_s) => load.recorder.cut(stopped_s),
        None => load.recorder,
    };
    let mut findings = recorder.conclude();
    findings.figure(What::ScheduleErrorP99Ms, "all", None, stats.error_p99_ms);
    findings.notes.extend(context.notes);
    findings.notes.extend(context.unset.notes);
    if !context.unset.faults.is_empty() {
        findings.figures.retain(|figure| figure.what != What::RecoveryS);
    }
    if let Some(stopped_s) = stopped_s {
        findings.notes.push(format!(
            "Stopped after {stopped_s:.1} of {} s: no expectation is judged, and requests in flight at that time \
             are not counted.",
            scenario.duration_s
        ));
    }
    let is_feasible = |fault: &&Fault| !context.unset.set_at_none.contains(fault);
    let faults = scenario.faults.iter().filter(is_feasible).cloned().collect();
    let with_set_faults = Scenario { faults, ..scenario.clone() };
    let mut report = Report::new(&with_set_faults, Mode::Drill, seed, findings);
    report.target = context.target;
    // An expectation about a fault that was not set has no figure.
    for check in &mut report.checks {
        if depends(scenario, &check.expected, &context.unset.faults) {
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
    fn own(test_bed: &TestBed, scenario: &Scenario) -> Result<Self, Failure> {
        let upstreams = test_bed.upstreams()?;
        let names =
            UpstreamNames::new((0..upstreams.len()).map(|number| format!("upstream-{number}")));
        let (uri, tokens) = (test_bed.target()?, TestBed::tokens(scenario));
        Ok(Self { uri, upstreams, names, tokens, notes: Vec::new() })
    }

    fn given(uri: &Uri, scenario: &Scenario, options: &Options) -> Result<Self, Failure> {
        blocking_http::connect(uri)
            .map_err(|error| Failure::Runtime(format!("can't reach {uri}: {error}")))?;
        let mut notes = Vec::new();
        let expected = scenario.upstreams.map_or(0, |upstreams| usize::from(upstreams.count));
        if !options.upstreams.is_empty() && options.upstreams.len() != expected {
            notes.push(format!(
                "The scenario has {expected} upstreams; --upstreams names {}.",
                options.upstreams.len()
            ));
        }
        let tenants = scenario.gateway().tenants;
        for tenant in tenants.iter().filter(|tenant| !options.tokens.contains_key(&tenant.name)) {
            let name = &tenant.name;
            notes.push(format!(
                "Requests of tenant {name} have no token: use --token {name}=TOKEN."
            ));
        }
        notes.push(
            "Capacity is that of the scenario's upstreams; the capacity of the target may differ."
                .to_owned(),
        );
        let names = options.upstreams.iter().map(name_of).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            uri: uri.clone(),
            upstreams: options.upstreams.clone(),
            names: UpstreamNames::new(names),
            tokens: options.tokens.clone(),
            notes,
        })
    }
}

/// Name of a mock upstream. Other upstreams accept no faults.
fn name_of(upstream: &Uri) -> Result<String, Failure> {
    let reply = blocking_http::request(upstream, "/mock/fault", None).map_err(|error| {
        Failure::Runtime(format!("can't reach the upstream {upstream}: {error}"))
    })?;
    match reply {
        blocking_http::Reply { status: 200, mock: Some(name), .. } => Ok(name),
        blocking_http::Reply { mock: Some(_), .. } => Err(Failure::Runtime(format!(
            "the upstream {upstream} accepts no faults: start it as tidegate mock --faults"
        ))),
        blocking_http::Reply { mock: None, .. } => Err(Failure::Runtime(format!(
            "the upstream {upstream} is not a mock: only tidegate mock --faults accepts faults"
        ))),
    }
}
