use super::format::{short, thousands};
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
    /// The description, in a line.
    pub about: String,
    /// The mode of the run.
    pub mode: Mode,
    /// The target of a drill.
    pub target: Option<String>,
    /// The command that runs it again; `None` if it was not run by a command.
    pub command: Option<String>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The duration in seconds.
    pub duration_s: f64,
    /// True if it was stopped before its end. Then nothing is judged.
    pub stopped: bool,
    /// Requests or records a second that could be done, where that is known.
    pub capacity_per_s: Option<f64>,
    /// The phases.
    pub phases: Vec<PhaseSpan>,
    /// The faults.
    pub faults: Vec<FaultSpan>,
    /// The schedule error of the generator, in a drill.
    pub schedule: Option<ScheduleReport>,
    /// The findings.
    #[serde(flatten)]
    pub findings: Findings,
    /// The checks of the expectations.
    pub checks: Vec<Check>,
}

/// A fault, and when it was on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultSpan {
    /// The fault, in words.
    pub what: String,
    /// The begin, in seconds.
    pub from_s: f64,
    /// The end.
    pub until_s: f64,
}

/// The schedule error of a generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ScheduleReport {
    /// Requests that were due.
    pub due: u64,
    /// Requests that the generator never sent: all connections that it may have were taken, or it had no socket
    /// left.
    pub unsent: u64,
    /// Requests that were never sent because the target gave no connection. They are failures of the target.
    pub not_connected: u64,
    /// Requests that were sent more than a millisecond late.
    pub late: u64,
    /// Requests that waited because as many connections as were allowed were in use.
    pub no_connection: u64,
    /// Connections that the generator's machine could not give.
    pub out_of_sockets: u64,
    /// Milliseconds between when requests were due and when they were sent: the median.
    pub error_p50_ms: f64,
    /// The 99th percentile.
    pub error_p99_ms: f64,
    /// The worst.
    pub error_max_ms: f64,
    /// The 99th percentile without the time that requests waited for a connection: the generator's own.
    pub own_error_p99_ms: f64,
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

    /// Returns the report of a run that was stopped, after so many seconds where that is known: of what did not
    /// come to pass nothing is judged.
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

    /// Returns `true` if every check holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }

    /// Returns the checks that do not hold.
    pub fn missed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.holds)
    }

    /// Returns the verdict, in a line.
    #[must_use]
    pub fn verdict(&self) -> String {
        let checks = self.checks.len();
        let s = if checks == 1 { "" } else { "s" };
        match self.missed().count() {
            _ if self.stopped => "Stopped before its end, so nothing was judged.".to_owned(),
            0 if checks == 0 => "Nothing was judged.".to_owned(),
            0 if checks == 1 => "held: the one expectation".to_owned(),
            0 => format!("held: all {checks} expectations"),
            missed => format!("MISSED: {missed} of {checks} expectation{s}"),
        }
    }
}

// === impl ScheduleReport ===

impl ScheduleReport {
    /// Returns a warning if the generator itself fell behind its schedule, which makes the results doubtful.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let mut faults = Vec::new();
        if self.own_error_p99_ms > SCHEDULE_ERROR_P99_MS_MAX {
            let error = short(self.own_error_p99_ms);
            faults.push(format!("its schedule error p99 is {error} ms, above 1 ms"));
        }
        if self.unsent > 0 {
            faults.push(format!("{} requests were never sent", thousands(self.unsent)));
        }
        if self.out_of_sockets > 0 {
            let count = thousands(self.out_of_sockets);
            faults.push(format!("this machine had no socket left for {count} connections"));
        }
        (!faults.is_empty()).then(|| {
            format!(
                "the generator did not keep its own schedule: {}. Part of what is measured here is \
                 the generator, not what it asked.",
                faults.join(", and ")
            )
        })
    }

    /// Returns a remark if the target delayed the schedule, which is no fault of the generator.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.not_connected > 0 {
            let count = thousands(self.not_connected);
            parts.push(format!("The target gave {count} requests no connection: they failed."));
        }
        if self.error_p99_ms > SCHEDULE_ERROR_P99_MS_MAX
            && self.own_error_p99_ms <= SCHEDULE_ERROR_P99_MS_MAX
        {
            parts.push(
                "Requests were sent late because they waited for a connection: all were in use or being \
                 opened. The target was slow to take them or to answer, or --connections is too low."
                    .to_owned(),
            );
        }
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    /// Merges several runs: counts are added, and of times the worst is taken. `None` of none.
    pub fn worst(runs: impl IntoIterator<Item = Self>) -> Option<Self> {
        runs.into_iter().reduce(|one, other| Self {
            due: one.due + other.due,
            unsent: one.unsent + other.unsent,
            not_connected: one.not_connected + other.not_connected,
            late: one.late + other.late,
            no_connection: one.no_connection + other.no_connection,
            out_of_sockets: one.out_of_sockets + other.out_of_sockets,
            error_p50_ms: one.error_p50_ms.max(other.error_p50_ms),
            error_p99_ms: one.error_p99_ms.max(other.error_p99_ms),
            error_max_ms: one.error_max_ms.max(other.error_max_ms),
            own_error_p99_ms: one.own_error_p99_ms.max(other.own_error_p99_ms),
            connections_max: one.connections_max.max(other.connections_max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_generator_did_makes_its_measure_doubtful() {
        let kept = ScheduleReport { due: 10, error_p99_ms: 0.4, ..ScheduleReport::default() };
        assert_eq!((kept.warning(), kept.remark()), (None, None));
        let refused = ScheduleReport { not_connected: 3, ..kept };
        assert_eq!(refused.warning(), None);
        assert!(refused.remark().is_some_and(|text| text.contains("3 requests no connection")));
        let waited = ScheduleReport { error_p99_ms: 80.0, ..kept };
        assert_eq!(waited.warning(), None);
        assert!(waited.remark().is_some_and(|text| text.contains("waited for a connection")));
        let late = ScheduleReport { error_p99_ms: 80.0, own_error_p99_ms: 1.1, ..kept };
        assert!(late.warning().is_some_and(|text| text.contains("1.1 ms")));
        for own in
            [ScheduleReport { unsent: 1, ..kept }, ScheduleReport { out_of_sockets: 1, ..kept }]
        {
            assert!(own.warning().is_some_and(|text| text.contains("did not keep its own")));
        }
    }

    #[test]
    fn of_several_runs_counts_are_summed_and_times_are_the_worst() {
        let run =
            |due, error_p99_ms| ScheduleReport { due, error_p99_ms, ..ScheduleReport::default() };
        let worst = ScheduleReport::worst([run(3, 0.5), run(4, 0.2)]);
        assert_eq!(worst, Some(run(7, 0.5)));
        assert_eq!(ScheduleReport::worst([]), None);
    }
}
