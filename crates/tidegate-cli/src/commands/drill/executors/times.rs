use std::time::Duration;
use tidegate_sim::executors::{PhaseCounts, PlacementRun, Sample};
use tidegate_sim::scenario::Scenario;

/// Approximate number of points in a chart.
const SAMPLES: f64 = 240.0;

/// Conversion between scenario time and the slower real time of a drill.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Real seconds per scenario second.
    pub slower: f64,
    /// Duration of the load in scenario seconds.
    pub duration_s: f64,
    /// Duration of a task in scenario seconds.
    pub task_s: f64,
}

// === impl Times ===

impl Times {
    pub fn real(&self, scenario_s: f64) -> Duration {
        Duration::from_secs_f64(scenario_s * self.slower)
    }

    pub fn scenario_s(&self, real: Duration) -> f64 {
        real.as_secs_f64() / self.slower
    }

    /// Real duration of a task.
    pub fn task(&self) -> Duration {
        self.real(self.task_s)
    }

    pub fn load(&self) -> Duration {
        self.real(self.duration_s)
    }
}

/// Measured window of each phase, in scenario seconds.
pub fn windows(scenario: &Scenario) -> Vec<(f64, f64)> {
    let spans = scenario.phase_spans();
    let window = |span: &tidegate_sim::scenario::PhaseSpan| {
        ((span.from_s + scenario.settle_s).min(span.until_s), span.until_s)
    };
    spans.iter().map(window).collect()
}

/// Increase of a counter in each window, from samples of its total.
pub fn by_phase(windows: &[(f64, f64)], totals: &[(f64, u64)]) -> Vec<u64> {
    let at = |at_s: f64| {
        let seen = totals.partition_point(|(seen_s, _)| *seen_s <= at_s);
        totals[..seen].last().map_or(0, |(_, total)| *total)
    };
    windows.iter().map(|(from_s, until_s)| at(*until_s).saturating_sub(at(*from_s))).collect()
}

pub fn counts(wasted: &[u64], messages: Option<&[u64]>) -> Vec<PhaseCounts> {
    let messages = |phase: usize| messages.and_then(|all| all.get(phase).copied());
    let count =
        |(phase, wasted): (usize, &u64)| PhaseCounts { messages: messages(phase), wasted: *wasted };
    wasted.iter().enumerate().map(count).collect()
}

/// Samples how many tasks wait and run over time.
pub fn sample(run: &mut PlacementRun, duration_s: f64) {
    let sorted = |mut times: Vec<f64>| {
        times.sort_unstable_by(f64::total_cmp);
        times
    };
    let due = sorted(run.tasks.iter().map(|task| task.due_s).collect());
    let started = sorted(run.tasks.iter().filter_map(|task| task.started_s).collect());
    let ended = sorted(run.ran_s.iter().map(|(_, ended_s)| *ended_s).collect());
    let until = |times: &[f64], at_s: f64| times.partition_point(|time| *time <= at_s) as u64;
    let step_s = (duration_s / SAMPLES).max(0.1);
    let steps = (duration_s / step_s) as u32;
    run.samples = (0..=steps)
        .map(|step| {
            let at_s = f64::from(step) * step_s;
            let begun = until(&started, at_s);
            Sample {
                at_s,
                waiting: until(&due, at_s).saturating_sub(begun),
                running: begun.saturating_sub(until(&ended, at_s)),
            }
        })
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sim::executors::{Policy, TaskRun};

    #[test]
    fn increases_are_by_phase() {
        let totals = [(0.0, 0), (1.0, 5), (2.0, 7), (3.0, 20)];
        assert_eq!(by_phase(&[(0.5, 1.5), (2.0, 9.0)], &totals), [5, 13]);
        assert_eq!(by_phase(&[(0.0, 1.0)], &[]), [0]);
    }

    #[test]
    fn waiting_and_running_follow_from_start_and_end() {
        let task = |due_s, started_s| TaskRun { due_s, started_s };
        let mut run = PlacementRun {
            policy: Policy::Seed,
            tasks: vec![task(0.05, Some(0.15)), task(0.05, None)],
            ran_s: vec![(0.15, 0.25)],
            counts: Vec::new(),
            lost: 0,
            twice: 0,
            samples: Vec::new(),
            decisions: 0,
        };
        sample(&mut run, 0.35);
        let seen: Vec<_> =
            run.samples.iter().map(|sample| (sample.waiting, sample.running)).collect();
        assert_eq!(seen, [(0, 0), (2, 0), (1, 1), (1, 0)]);
    }
}
