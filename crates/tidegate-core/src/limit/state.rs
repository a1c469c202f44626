use super::logarithm::{exp, ln};
use super::{LatencySample, LimitConfig, LimitMove, Observation};

/// State of the control law between two rounds.
///
/// An experiment compares two levels: the limit, and a lower level. Rounds alternate between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitState {
    pub(super) limit: u32,
    /// Size of the next change.
    pub(super) stride: u32,
    pub(super) direction: Direction,
    /// Level below the limit that an experiment compares it with.
    pub(super) lower: u32,
    /// True while the lower level is in force.
    pub(super) is_probing: bool,
    /// True after a start or calm, until an experiment fails: the limit may double without proof.
    pub(super) is_fresh: bool,
    /// Rounds of calm until a cut or a wide step down is forgotten; 0 if there was none. Until then calm is no
    /// reason to raise the limit again.
    pub(super) caution: u32,
    pub(super) at_limit: LatencySample,
    pub(super) at_lower: LatencySample,
    pub(super) probes: u32,
    /// Rounds until a flat latency alone may raise the limit again.
    pub(super) patience: u32,
    pub(super) baseline: Option<Baseline>,
    /// Share of failures that a lower limit did not reduce.
    pub(super) failure_floor: f64,
    /// Share of failures before the last cut for failures.
    pub(super) failures_before: Option<f64>,
    /// Typical latency, smoothed over rounds, in seconds; 0 before the first.
    pub(super) latency_s: f64,
    pub(super) elasticity: Option<f64>,
    pub(super) last_move: LimitMove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    /// The last move halved the distance between two levels.
    Between,
    Down,
}

/// Latency at a low concurrency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Baseline {
    /// Mean logarithm of the latency.
    pub(super) mean: f64,
    /// The same plus two standard errors: a round above it is slower for sure.
    pub(super) upper: f64,
    /// Least concurrency at which it was seen.
    pub(super) concurrency: f64,
}

/// Rounds for which a lowered limit is not raised by a flat latency alone, so that a level that just failed is
/// not tried again at once.
const PATIENCE_ROUNDS: u32 = 8;

/// Rounds of calm in a row after which a cut is forgotten, at least 128 latencies: a load that dithers about the
/// capacity is not calm for as long.
pub(super) const CAUTION_ROUNDS: u32 = 32;

// === impl LimitState ===

impl LimitState {
    /// Returns the state before the first round.
    #[must_use]
    pub fn new(config: &LimitConfig) -> Self {
        let limit = config.start.clamp(1, config.max.max(1));
        Self {
            limit,
            stride: limit,
            direction: Direction::Up,
            lower: 1,
            is_probing: false,
            is_fresh: true,
            caution: 0,
            at_limit: LatencySample::default(),
            at_lower: LatencySample::default(),
            probes: 0,
            patience: 0,
            baseline: None,
            failure_floor: 0.0,
            failures_before: None,
            latency_s: 0.0,
            elasticity: None,
            last_move: LimitMove::Start,
        }
    }

    /// Limit that was found, apart from a running experiment.
    #[must_use]
    pub const fn found(&self) -> u32 {
        self.limit
    }

    /// Limit in force in the next round.
    #[must_use]
    pub const fn level(&self) -> u32 {
        if self.is_probing { self.lower } else { self.limit }
    }

    /// Cause of the last change.
    #[must_use]
    pub const fn last_move(&self) -> LimitMove {
        self.last_move
    }

    /// Least change, half the square root of the limit: half the standard deviation of the number in flight when
    /// arrivals are random. A smaller change drowns in it.
    pub(super) fn least_stride(&self) -> u32 {
        ((f64::from(self.limit).sqrt() / 2.0).round() as u32).max(1)
    }

    /// Distance between the two levels of the experiment.
    pub(super) const fn gap(&self) -> u32 {
        self.limit - self.lower
    }

    /// Forgets the experiment, and chooses the lower level of the next: a stride below, at most a quarter.
    pub(super) fn restart_experiment(&mut self) {
        self.at_limit = LatencySample::default();
        self.at_lower = LatencySample::default();
        self.is_probing = false;
        self.probes = 0;
        let least = self.least_stride();
        let depth = self.stride.clamp(least, (self.limit / 4).max(least));
        self.lower = self.limit.saturating_sub(depth).max(1);
    }

    /// Raises the limit: twice as far as before in the same direction, half as far after a turn.
    pub(super) fn raise(&mut self, max: u32, cause: LimitMove) {
        let (least, was, before) = (self.least_stride(), self.limit, self.at_limit);
        let again = self.direction == Direction::Up;
        let stride = if again { self.stride.saturating_mul(2) } else { self.stride / 2 };
        self.stride = stride.clamp(least, was.max(least));
        self.direction = Direction::Up;
        self.limit = was.saturating_add(self.stride).min(max.max(1));
        self.last_move = cause;
        self.restart_experiment();
        // The round that proved this step is the lower level of the next, if the step is wide enough for its
        // noise.
        if (again || self.stride >= was / 4) && self.limit > was {
            self.at_lower = before;
            self.lower = was;
        }
    }

    /// Lowers the limit: half the way back after a raise, else to the level that is as good.
    pub(super) fn lower(&mut self) {
        let (least, gap) = (self.least_stride(), self.gap());
        if self.direction == Direction::Up && gap / 2 >= least {
            self.stride = gap / 2;
            self.limit -= gap / 2;
            self.direction = Direction::Between;
        } else {
            let again = self.direction == Direction::Down;
            self.stride = if again { 2 * gap } else { gap }.max(least);
            self.limit = self.lower;
            self.direction = Direction::Down;
        }
        if gap > least {
            // As certain as a cut that the higher level is too high, and not by noise.
            self.caution = CAUTION_ROUNDS;
        }
        self.is_fresh = false;
        self.patience = PATIENCE_ROUNDS;
        self.last_move = LimitMove::Lowered;
        self.restart_experiment();
    }

    /// Sets the limit below a level that is proven to be too high.
    pub(super) fn cut(&mut self, limit: u32, cause: LimitMove) {
        self.caution = CAUTION_ROUNDS;
        self.limit = limit.clamp(1, self.limit);
        self.stride = (self.limit / 2).max(1);
        self.direction = Direction::Down;
        self.is_fresh = false;
        self.last_move = cause;
        self.restart_experiment();
    }

    /// Sets a limit that is not the law's own, from which the limit may double without proof.
    pub(super) fn resume(&mut self, limit: u32, cause: LimitMove) {
        self.limit = limit.max(1);
        self.stride = self.limit;
        self.direction = Direction::Up;
        self.is_fresh = true;
        self.last_move = cause;
        self.restart_experiment();
    }

    /// Takes a round into the experiment; returns the latencies of its level.
    pub(super) fn record(&mut self, round: &Observation, keep: f64) -> LatencySample {
        let level = if round.is_probe { &mut self.at_lower } else { &mut self.at_limit };
        level.pool(&round.latency, keep);
        *level
    }

    /// Takes latencies at a concurrency into the baseline: the lowest that is certain, or what is seen at no
    /// more concurrency than before.
    pub(super) fn learn_baseline(&mut self, seen: &LatencySample, concurrency: f64) -> Baseline {
        let (mean, error) = (seen.mean(), seen.error());
        let new = Baseline { mean, upper: mean + error, concurrency };
        let baseline = match self.baseline {
            None => new,
            Some(old) if concurrency <= old.concurrency && mean - error > old.upper => {
                Baseline { mean: mean - error, upper: mean - error, concurrency }
            }
            Some(old) => {
                let better = if new.upper < old.upper { new } else { old };
                let same = mean - error <= old.upper;
                let concurrency =
                    if same { old.concurrency.min(concurrency) } else { old.concurrency };
                Baseline { concurrency, ..better }
            }
        };
        self.baseline = Some(baseline);
        baseline
    }
}

// === impl Baseline ===

impl Baseline {
    /// Baseline over latency. With a convex latency it bounds the elasticity of throughput from above.
    pub(super) fn over(&self, mean: f64) -> f64 {
        exp((self.mean - mean).min(0.0))
    }

    /// Returns `true` if the latency is at most `factor` times the baseline.
    pub(super) fn is_within(&self, mean: f64, factor: f64) -> bool {
        mean - self.upper < ln(factor)
    }
}
