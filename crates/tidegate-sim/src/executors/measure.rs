use super::{ExecutorsReport, ExecutorsScenario};
use crate::agenda::Time;
use crate::scenario::Scenario;

/// The share of tasks, in percent, before the measurement begins: the queue is still filling.
const WARM_UP_PERCENT: u64 = 10;

/// Executor task's way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) arrived: Time,
    pub(super) takes: Time,
    /// The first time.
    pub(super) started: Option<Time>,
    /// The wait that was estimated when it was submitted.
    pub(super) estimated_wait: Option<Time>,
}

/// The counts of a running simulation.
#[derive(Debug, Default)]
pub(super) struct Measure {
    pub(super) tasks: Vec<Task>,
    pub(super) wasted: u64,
    pub(super) messages: u64,
    /// When the last task arrived, or the load is over.
    pub(super) horizon: Time,
    /// The time at which the queue was empty after the burst.
    pub(super) recovered: Option<Time>,
    /// Tasks that are over.
    pub(super) over: u64,
    /// Tasks that never were.
    pub(super) lost: u64,
    /// Tasks that were started twice without need.
    pub(super) twice: u64,
    /// Decisions of the shipped code.
    pub(super) decisions: u64,
    /// The phases, without what is not judged of them.
    pub(super) windows: Vec<Window>,
    /// The begin and end of each execution.
    pub(super) runs: Vec<(Time, Time)>,
    running: u64,
    /// Samples: the time, queued tasks and running tasks.
    pub(super) samples: Vec<(Time, u64, u64)>,
}

/// The time of a phase that is judged, and what was counted in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    pub(super) from: Time,
    pub(super) until: Time,
    pub(super) messages: u64,
    pub(super) wasted: u64,
}

// === impl Measure ===

impl Measure {
    pub(super) fn judging(scenario: &Scenario) -> Self {
        let time = |s: f64| (s * 1e9) as Time;
        let spans = scenario.phase_spans();
        let windows = spans.iter().map(|span| Window {
            from: time((span.from_s + scenario.settle_s).min(span.until_s)),
            until: time(span.until_s),
            messages: 0,
            wasted: 0,
        });
        Self { windows: windows.collect(), ..Self::default() }
    }

    pub(super) fn arrives(&mut self, arrived: Time, takes: Time) -> u64 {
        self.horizon = self.horizon.max(arrived);
        self.tasks.push(Task { arrived, takes, started: None, estimated_wait: None });
        self.tasks.len() as u64 - 1
    }

    pub(super) fn task(&mut self, task: u64) -> Option<&mut Task> {
        self.tasks.get_mut(usize::try_from(task).ok()?)
    }

    pub(super) fn starts(&mut self, task: u64, now: Time) {
        self.running += 1;
        if let Some(task) = self.task(task) {
            task.started.get_or_insert(now);
        }
    }

    /// Records the end of an execution that began then.
    pub(super) fn stops(&mut self, began: Time, now: Time) {
        self.running = self.running.saturating_sub(1);
        if !self.windows.is_empty() {
            self.runs.push((began, now));
        }
    }

    /// Returns the number of running tasks.
    pub(super) fn running(&self) -> u64 {
        self.running
    }

    pub(super) fn message(&mut self, now: Time) {
        self.messages += 1;
        if let Some(window) = self.windows.iter_mut().find(|it| it.has(now)) {
            window.messages += 1;
        }
    }

    /// A submission was refused because the executor was full.
    pub(super) fn waste(&mut self, now: Time) {
        self.wasted += 1;
        if let Some(window) = self.windows.iter_mut().find(|it| it.has(now)) {
            window.wasted += 1;
        }
    }

    pub(super) fn sample(&mut self, now: Time) {
        let not_over = (self.tasks.len() as u64).saturating_sub(self.over);
        self.samples.push((now, not_over.saturating_sub(self.running), self.running));
    }

    pub(super) fn report(&self, scenario: &ExecutorsScenario) -> ExecutorsReport {
        let horizon = self.horizon;
        let warm = self.tasks.len() as u64 * WARM_UP_PERCENT / 100;
        let measured = &self.tasks[usize::try_from(warm).unwrap_or_default()..];
        let from = measured.first().map_or(0, |task| task.arrived);
        // Who has not started yet counts with what it has waited.
        let wait = |task: &Task| task.started.unwrap_or(horizon).saturating_sub(task.arrived);
        let mut waits: Vec<Time> = measured.iter().map(wait).collect();
        waits.sort_unstable();
        let started = self.tasks.iter().filter(|task| task.started.is_some()).count() as u64;
        let busy: u64 = self.tasks.iter().map(|task| busy(task, from, horizon)).sum();
        let slot_time = (horizon - from) as f64 * f64::from(scenario.executors);
        let estimated =
            measured.iter().filter_map(|task| Some((task.estimated_wait?, task.started?, task)));
        let mut wait_per_estimate: Vec<f64> = estimated
            .filter(|(estimate, ..)| *estimate > 0)
            .map(|(estimate, started, task)| (started - task.arrived) as f64 / estimate as f64)
            .collect();
        wait_per_estimate.sort_unstable_by(f64::total_cmp);
        ExecutorsReport {
            tasks: self.tasks.len() as u64,
            started,
            wasted: self.wasted,
            messages: self.messages,
            wait_mean_ms: waits.iter().sum::<u64>() as f64 / waits.len().max(1) as f64 / 1e6,
            wait_p99_ms: at_percent(&waits, 99).unwrap_or_default() as f64 / 1e6,
            used: if slot_time > 0.0 { busy as f64 / slot_time } else { 0.0 },
            recovered: self.recovered.map(std::time::Duration::from_nanos),
            wait_per_estimate: [10, 50, 90].map(|percent| at_percent(&wait_per_estimate, percent)),
        }
    }
}

// === impl Window ===

impl Window {
    pub(super) fn has(&self, at: Time) -> bool {
        (self.from..self.until).contains(&at)
    }
}

/// Returns the time for which it ran between two moments.
fn busy(task: &Task, from: Time, until: Time) -> Time {
    let Some(started) = task.started else { return 0 };
    let ended = (started + task.takes).min(until);
    ended.saturating_sub(started.max(from))
}

pub(super) fn at_percent<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}
