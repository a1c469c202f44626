use serde::{Deserialize, Serialize};
use std::fmt;

/// A range that a figure of the run must be in.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The figure.
    pub what: What,
    /// The group: `all` (requests to upstreams, so without Critical), a class, `priority:low`, `tenant:NAME`,
    /// `healthy` (answers of upstreams that no fault names), or a placement.
    #[serde(default = "all")]
    pub of: String,
    /// The phase; without it all of the judged time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The phase of the same figure that this one is divided by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// The least value on both sides of the ratio: smaller values count as this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<f64>,
    /// At least this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// At most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Only where it is simulated, or only where it is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<Mode>,
    /// The reason, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The mode of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// In virtual time.
    Sim,
    /// On something real.
    Drill,
}

/// A figure that a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Gateway: good answers a second, of what the upstreams can do. Good is a success within the deadline.
    GoodputOfCapacity,
    /// Good answers, of what was offered. For executors: tasks started.
    GoodputOfOffered,
    /// Gateway: the share of what was offered that was refused in the end.
    RefusedShare,
    /// Gateway: the share of what was offered that failed in the end, or came too late.
    FailedShare,
    /// Gateway: milliseconds from when a request was due to the end of its good answer, the mean.
    LatencyMeanMs,
    /// The median.
    LatencyP50Ms,
    /// The 99th percentile.
    LatencyP99Ms,
    /// Gateway: of the refusals, the share that came in a stretch of 100 ms in which a lower priority was let
    /// in that the same limit could have refused instead.
    Inversions,
    /// Seconds from the end of the last fault until all is as it was before the first, and stays so.
    RecoveryS,
    /// Pipeline: records stored, of those offered.
    StoredOfOffered,
    /// Pipeline: records stored a second, of what the store can do.
    StoredOfCapacity,
    /// Pipeline: records stored, of those that the same stages would have stored with windows without end.
    StoredOfPossible,
    /// Pipeline: records that are neither stored nor held by anyone. Executors: tasks that never ended.
    Lost,
    /// Pipeline: records stored twice. Executors: attempts that were started twice.
    Twice,
    /// Pipeline: milliseconds from when a record was due to when it was stored, the 99th percentile.
    LagP99Ms,
    /// Pipeline: the most bytes held at once, of the budget.
    HeldOfBudget,
    /// Pipeline: seconds from the beginning of a blockage until every window is at its least.
    WindowsLeastS,
    /// Executors: milliseconds from a task's arrival to its start, the mean.
    WaitMeanMs,
    /// The 99th percentile.
    WaitP99Ms,
    /// Executors: refused submissions for each task that started.
    WastedPerTask,
    /// Executors: requests and replies for each task that started.
    MessagesPerTask,
    /// Executors: of the time of all slots, the share in which they worked.
    Used,
    /// Drill: milliseconds between when a request was due and when it was sent, the 99th percentile.
    ScheduleErrorP99Ms,
}

// === impl Expectation ===

impl Expectation {
    /// Returns `true` if this value is in the range.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }

    /// Returns `true` if it is judged in this mode.
    #[must_use]
    pub fn is_for(&self, mode: Mode) -> bool {
        self.only.is_none_or(|only| only == mode)
    }
}

impl fmt::Display for Expectation {
    /// In words: `latency_p99_ms of priority:critical in flood against calm ≤ 1.5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.what, self.of)?;
        if let Some(phase) = &self.phase {
            write!(f, " in {phase}")?;
        }
        if let Some(against) = &self.against {
            write!(f, " against {against}")?;
        }
        if let Some(floor) = self.floor {
            write!(f, ", each at least {floor},")?;
        }
        match (self.min, self.max) {
            (Some(min), Some(max)) => write!(f, " {min} … {max}"),
            (Some(min), None) => write!(f, " ≥ {min}"),
            (None, Some(max)) => write!(f, " ≤ {max}"),
            (None, None) => Ok(()),
        }
    }
}

// === impl What ===

impl What {
    /// Returns `true` if it is counted in the judged time only.
    pub(super) const fn is_of_judged_time(self) -> bool {
        use What::{
            HeldOfBudget, Lost, RecoveryS, ScheduleErrorP99Ms, StoredOfPossible, Twice,
            WindowsLeastS,
        };
        !matches!(
            self,
            HeldOfBudget
                | Lost
                | RecoveryS
                | ScheduleErrorP99Ms
                | StoredOfPossible
                | Twice
                | WindowsLeastS
        )
    }

    /// Its name in scenario files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GoodputOfCapacity => "goodput_of_capacity",
            Self::GoodputOfOffered => "goodput_of_offered",
            Self::RefusedShare => "refused_share",
            Self::FailedShare => "failed_share",
            Self::LatencyMeanMs => "latency_mean_ms",
            Self::LatencyP50Ms => "latency_p50_ms",
            Self::LatencyP99Ms => "latency_p99_ms",
            Self::Inversions => "inversions",
            Self::RecoveryS => "recovery_s",
            Self::StoredOfOffered => "stored_of_offered",
            Self::StoredOfCapacity => "stored_of_capacity",
            Self::StoredOfPossible => "stored_of_possible",
            Self::Lost => "lost",
            Self::Twice => "twice",
            Self::LagP99Ms => "lag_p99_ms",
            Self::HeldOfBudget => "held_of_budget",
            Self::WindowsLeastS => "windows_least_s",
            Self::WaitMeanMs => "wait_mean_ms",
            Self::WaitP99Ms => "wait_p99_ms",
            Self::WastedPerTask => "wasted_per_task",
            Self::MessagesPerTask => "messages_per_task",
            Self::Used => "used",
            Self::ScheduleErrorP99Ms => "schedule_error_p99_ms",
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn all() -> String {
    "all".to_owned()
}
