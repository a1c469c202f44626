use super::crew::Totals;
use crate::commands::drill::screen::Board;
use std::time::Duration;
use tidegate_sim::executors::Policy;

const SECOND: Duration = Duration::from_secs(1);

/// How the run of one placement goes, for the eye.
#[derive(Debug)]
pub struct Progress {
    policy: Policy,
    board: Board,
    /// How long the placements before it took.
    before: Duration,
    since: Duration,
    started: u64,
    started_per_s: f64,
}

// === impl Progress ===

impl Progress {
    pub fn new(policy: Policy, board: Board, before: Duration) -> Self {
        let since = Duration::ZERO;
        Self { policy, board, before, since, started: 0, started_per_s: 0.0 }
    }

    /// So many tasks were due by now, of which executors did this; `besides` is told behind that.
    pub fn show(&mut self, now: Duration, due: u64, done: Totals, besides: &str) {
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
            "{}  {:.0} started/s  {} waiting  {} running{refused}  {besides}",
            self.policy,
            self.started_per_s,
            due.saturating_sub(done.started),
            done.started.saturating_sub(done.ended),
        );
        self.board.write(self.before + now, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_are_tasks_not_looks() {
        let board = Board::default();
        let mut progress = Progress::new(Policy::Seed, board.clone(), 10 * SECOND);
        let done = |started, ended, refused| Totals { started, ended, refused };
        progress.show(SECOND / 2, 3, done(1, 0, 0), "8 messages");
        let told = "seed  0 started/s  2 waiting  1 running  8 messages".to_owned();
        assert_eq!(board.read(), (10 * SECOND + SECOND / 2, told));
        progress.show(2 * SECOND, 90, done(60, 50, 7), "1234 messages");
        let told = "seed  30 started/s  30 waiting  10 running  7 refused  1234 messages";
        assert_eq!(board.read().1, told);
    }
}
