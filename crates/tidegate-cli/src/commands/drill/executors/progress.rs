use super::pool::Totals;
use crate::commands::drill::progress::ProgressState;
use std::time::Duration;
use tidegate_sim::executors::Policy;

const SECOND: Duration = Duration::from_secs(1);

/// Progress of the run of one placement.
#[derive(Debug)]
pub struct Progress {
    policy: Policy,
    state: ProgressState,
    /// Duration of the placements before it.
    before: Duration,
    since: Duration,
    started: u64,
    started_per_s: f64,
}

// === impl Progress ===

impl Progress {
    pub fn new(policy: Policy, state: ProgressState, before: Duration) -> Self {
        let since = Duration::ZERO;
        Self { policy, state, before, since, started: 0, started_per_s: 0.0 }
    }

    /// Shows the tasks that were due by now and the executors' totals, then `detail`.
    pub fn show(&mut self, now: Duration, due: u64, done: Totals, detail: &str) {
        let passed = now.saturating_sub(self.since);
        if passed >= SECOND {
            let started = done.started.saturating_sub(self.started);
            self.started_per_s = started as f64 / passed.as_secs_f64();
            (self.since, self.started) = (now, done.started);
        }
        let refused = match done.refused {
            0 => String::new(),
            refused => format!("  {refused} refused"),
        };
        let text = format!(
            "{}  {:.0} started/s  {} waiting  {} running{refused}  {detail}",
            self.policy,
            self.started_per_s,
            due.saturating_sub(done.started),
            done.started.saturating_sub(done.ended),
        );
        self.state.write(self.before + now, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_tasks() {
        let state = ProgressState::default();
        let mut progress = Progress::new(Policy::Seed, state.clone(), 10 * SECOND);
        let done = |started, ended, refused| Totals { started, ended, refused };
        progress.show(SECOND / 2, 3, done(1, 0, 0), "8 messages");
        let text = "seed  0 started/s  2 waiting  1 running  8 messages".to_owned();
        assert_eq!(state.read(), (10 * SECOND + SECOND / 2, text));
        progress.show(2 * SECOND, 90, done(60, 50, 7), "1234 messages");
        let text = "seed  30 started/s  30 waiting  10 running  7 refused  1234 messages";
        assert_eq!(state.read().1, text);
    }
}
