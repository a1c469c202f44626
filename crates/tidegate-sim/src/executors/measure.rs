use super::{ExecutorsReport, ExecutorsScenario};
use crate::agenda::Time;

/// Of the tasks, so many a hundred come before anything is measured: the line is still filling.
const WARM_UP_PERCENT: u64 = 10;

/// One task's way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) arrived: Time,
    pub(super) takes: Time,
    pub(super) started: Option<Time>,
    /// How long it was told that it would wait.
    pub(super) told: Option<Time>,
}

/// What is counted while a simulation runs.
#[derive(Debug, Default)]
pub(super) struct Measure {
    pub(super) tasks: Vec<Task>,
    pub(super) wasted: u64,
    pub(super) messages: u64,
    /// When the last task arrived.
    pub(super) horizon: Time,
    /// When nobody waited any more after the burst.
    pub(super) recovered: Option<Time>,
}

// === impl Measure ===

impl Measure {
    pub(super) fn arrives(&mut self, arrived: Time, takes: Time) -> u64 {
        self.horizon = self.horizon.max(arrived);
        self.tasks.push(Task { arrived, takes, started: None, told: None });
        self.tasks.len() as u64 - 1
    }

    pub(super) fn task(&mut self, task: u64) -> Option<&mut Task> {
        self.tasks.get_mut(usize::try_from(task).ok()?)
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
        let told = measured.iter().filter_map(|task| Some((task.told?, task.started?, task)));
        let mut came_per_told: Vec<f64> = told
            .filter(|(told, ..)| *told > 0)
            .map(|(told, started, task)| (started - task.arrived) as f64 / told as f64)
            .collect();
        came_per_told.sort_unstable_by(f64::total_cmp);
        ExecutorsReport {
            tasks: self.tasks.len() as u64,
            started,
            wasted: self.wasted,
            messages: self.messages,
            wait_mean_ms: waits.iter().sum::<u64>() as f64 / waits.len().max(1) as f64 / 1e6,
            wait_p99_ms: at_percent(&waits, 99).unwrap_or_default() as f64 / 1e6,
            used: if slot_time > 0.0 { busy as f64 / slot_time } else { 0.0 },
            recovered: self.recovered.map(std::time::Duration::from_nanos),
            came_per_told: [10, 50, 90].map(|percent| at_percent(&came_per_told, percent)),
        }
    }
}

/// How long it ran between two moments.
fn busy(task: &Task, from: Time, until: Time) -> Time {
    let Some(started) = task.started else { return 0 };
    let ended = (started + task.takes).min(until);
    ended.saturating_sub(started.max(from))
}

fn at_percent<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}
