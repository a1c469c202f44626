use super::words::{short, thousands};
use super::{Check, Findings, judge};
use crate::scenario::{Mode, PhaseSpan, Scenario};
use serde::Serialize;

/// A generator whose requests are later than this, one in a hundred, is part of what it measures.
const SCHEDULE_ERROR_P99_MS_MAX: f64 = 1.0;

/// A run and what came of it. `--json` prints it, and the page in HTML is made of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// What it shows.
    pub about: String,
    /// How it was run.
    pub mode: Mode,
    /// What was asked, where it was something real.
    pub target: Option<String>,
    /// How it is run again, as it is typed; `None` where nobody typed it.
    pub command: Option<String>,
    /// Where all chance came from.
    pub seed: u64,
    /// How long it ran, in seconds.
    pub duration_s: f64,
    /// Whether somebody stopped it before its end. Then nothing is judged.
    pub stopped: bool,
    /// Requests or records a second that could be done, where that is known.
    pub capacity_per_s: Option<f64>,
    /// What was when.
    pub phases: Vec<PhaseSpan>,
    /// What went wrong when.
    pub faults: Vec<FaultSpan>,
    /// How well the generator kept to its own schedule, where there was one.
    pub schedule: Option<ScheduleReport>,
    /// What was found out.
    #[serde(flatten)]
    pub findings: Findings,
    /// What was expected, and what came.
    pub checks: Vec<Check>,
}

/// A fault, and when it was on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultSpan {
    /// What went wrong.
    pub what: String,
    /// When it began, in seconds.
    pub from_s: f64,
    /// When it was over.
    pub until_s: f64,
}

/// How well a generator kept to its schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ScheduleReport {
    /// Requests that were due.
    pub due: u64,
    /// Requests that were never sent: the run was over before there was a connection for them.
    pub unsent: u64,
    /// Requests that were sent more than a millisecond late.
    pub late: u64,
    /// Requests that waited because as many connections as were allowed were in use.
    pub no_connection: u64,
    /// Milliseconds between when requests were due and when they were sent: the median.
    pub error_p50_ms: f64,
    /// The 99th percentile.
    pub error_p99_ms: f64,
    /// The worst.
    pub error_max_ms: f64,
    /// Connections in use at once, the most.
    pub connections_max: u64,
}

// === impl Report ===

impl Report {
    /// The report of a run of this scenario.
    #[must_use]
    pub fn new(scenario: &Scenario, mode: Mode, seed: u64, findings: Findings) -> Self {
        let fault = |fault: &crate::scenario::Fault| FaultSpan {
            what: fault.to_string(),
            from_s: fault.from_s,
            until_s: fault.until_s,
        };
        Self {
            scenario: scenario.name.clone(),
            about: scenario.about.clone(),
            mode,
            target: None,
            command: None,
            seed,
            duration_s: scenario.duration_s,
            stopped: false,
            capacity_per_s: scenario.capacity_per_s(),
            phases: scenario.phase_spans(),
            faults: scenario.faults.iter().map(fault).collect(),
            schedule: None,
            checks: judge(&scenario.expectations, &findings, mode),
            findings,
        }
    }

    /// The report of a run that somebody stopped, after so many seconds where that is known: of what did not come
    /// to pass nothing is judged.
    #[must_use]
    pub fn stopped_after(mut self, stopped_s: Option<f64>) -> Self {
        self.stopped = true;
        self.checks.clear();
        if let Some(stopped_s) = stopped_s {
            self.duration_s = stopped_s;
            self.phases.retain(|span| span.from_s < stopped_s);
            self.faults.retain(|fault| fault.from_s < stopped_s);
        }
        self
    }

    /// Whether everything came as expected.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }

    /// What did not.
    pub fn missed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.holds)
    }

    /// What it comes to, in a line.
    #[must_use]
    pub fn verdict(&self) -> String {
        let checks = self.checks.len();
        let s = if checks == 1 { "" } else { "s" };
        match self.missed().count() {
            _ if self.stopped => "Stopped before its end, so nothing was judged.".to_owned(),
            0 if checks == 0 => "Nothing was expected, so nothing was judged.".to_owned(),
            0 if checks == 1 => "held: the one expectation".to_owned(),
            0 => format!("held: all {checks} expectations"),
            missed => format!("MISSED: {missed} of {checks} expectation{s}"),
        }
    }
}

// === impl ScheduleReport ===

impl ScheduleReport {
    /// What makes what was measured doubtful, if anything does.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let mut faults = Vec::new();
        if self.error_p99_ms > SCHEDULE_ERROR_P99_MS_MAX {
            let error = short(self.error_p99_ms);
            faults.push(format!("its schedule error p99 is {error} ms, above 1 ms"));
        }
        if self.unsent > 0 {
            faults.push(format!("{} requests were never sent", thousands(self.unsent)));
        }
        (!faults.is_empty()).then(|| {
            format!(
                "the generator did not keep its own schedule: {}. Part of what is measured here is \
                 the generator, not what it asked.",
                faults.join(", and ")
            )
        })
    }
}
