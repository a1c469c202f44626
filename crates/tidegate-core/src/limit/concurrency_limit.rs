use super::abandoned::Abandoned;
use super::breaker::Breaker;
use super::logarithm::exp;
use super::reported::Reported;
use super::round::{Round, UNNOTICED_S};
use super::{LimitConfig, LimitMove, LimitSnapshot, LimitState, UpstreamOutcome, step};
use std::time::Duration;

/// Concurrency limit of one upstream that finds itself.
///
/// The caller counts every request with [`on_start`](Self::on_start) and [`on_end`](Self::on_end), says when
/// somebody waits, and calls [`tick`](Self::tick) a few times a second. Each is a constant number of
/// operations in constant memory. Time is a [`Duration`] since a start that the caller chose, and never goes
/// back.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::limit::{ConcurrencyLimit, LimitConfig, UpstreamOutcome};
///
/// let ms = Duration::from_millis;
/// let mut limit = ConcurrencyLimit::new(LimitConfig::default());
/// assert_eq!(limit.limit(), 4);
/// assert!(limit.allows(ms(0)));
/// let started = limit.on_start(ms(0));
/// limit.on_end(ms(20), started, UpstreamOutcome::Success);
///
/// // An inference server that runs 12 requests and has 3 waiting is full: 12 is its limit.
/// limit.on_report(ms(30), 12, 3);
/// assert_eq!(limit.limit(), 12);
/// assert_eq!(limit.last_move().label(), "reported");
/// ```
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    config: LimitConfig,
    state: LimitState,
    round: Round,
    level: u32,
    in_flight: u32,
    is_awaited: bool,
    own_delay_s: f64,
    abandoned: Abandoned,
    breaker: Breaker,
    /// Limit after the breaker closes.
    resume_at: Option<u32>,
    /// True if the last silence was a timeout: the upstream is there, and slow.
    is_slow: bool,
    reported: Reported,
    last_move: LimitMove,
}

/// Start of a request, which its end gives back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Started {
    at_s: f64,
    in_flight: u32,
}

/// Ends between two looks at a round: the look costs as much as four ends.
const LOOK_ENDS: u32 = 8;

// === impl ConcurrencyLimit ===

impl ConcurrencyLimit {
    /// Returns the limit of an upstream to which nothing was sent yet.
    #[must_use]
    pub fn new(config: LimitConfig) -> Self {
        let state = LimitState::new(&config);
        Self {
            config,
            state,
            round: Round::begin(0.0, 0, &state, false, false),
            level: state.level(),
            in_flight: 0,
            is_awaited: false,
            own_delay_s: 0.0,
            abandoned: Abandoned::default(),
            breaker: Breaker::default(),
            resume_at: None,
            is_slow: false,
            reported: Reported::default(),
            last_move: LimitMove::Start,
        }
    }

    /// Most requests at once now, at least 1.
    #[must_use]
    pub fn limit(&self) -> u32 {
        let limit = if self.breaker.is_open() { 1 } else { self.level };
        limit.clamp(1, self.config.max.max(1))
    }

    /// Most requests of the caller's own at once at this time, at least 1: the limit without the places of those
    /// that were given up and may still be at the upstream.
    #[must_use]
    pub fn limit_at(&self, now: Duration) -> u32 {
        self.limit().saturating_sub(self.abandoned_at(now.as_secs_f64())).max(1)
    }

    /// Requests that began and did not end.
    #[must_use]
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns `true` while the limit is what the upstream reports: it then counts the requests of all senders.
    #[must_use]
    pub const fn is_reported(&self) -> bool {
        self.reported.limit().is_some()
    }

    /// Returns `true` while the upstream does not respond and only probes are sent.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.breaker.is_open()
    }

    /// Returns `true` if one more request may be sent. While the breaker is open, that is one probe at a time.
    #[must_use]
    pub fn allows(&self, now: Duration) -> bool {
        if self.breaker.is_open() {
            return self.breaker.allows_probe(now.as_secs_f64());
        }
        self.in_flight < self.limit_at(now)
    }

    /// Counts a request that is sent.
    pub fn on_start(&mut self, now: Duration) -> Started {
        let now_s = now.as_secs_f64();
        self.advance(now_s);
        self.in_flight = self.in_flight.saturating_add(1);
        self.round.on_start(self.in_flight);
        self.breaker.on_start(now_s);
        Started { at_s: now_s, in_flight: self.in_flight }
    }

    /// Counts the end of a request.
    pub fn on_end(&mut self, now: Duration, started: Started, outcome: UpstreamOutcome) {
        let now_s = now.as_secs_f64();
        self.advance(now_s);
        self.in_flight = self.in_flight.saturating_sub(1);
        let elapsed_s = now_s - started.at_s;
        if matches!(outcome, UpstreamOutcome::Abandoned | UpstreamOutcome::TimedOut) {
            // As long again as it took, and at least as long as a request takes.
            self.abandoned.add(now_s, elapsed_s.max(self.state.latency_s));
        }
        let is_overdue = outcome == UpstreamOutcome::Abandoned && self.is_overdue(elapsed_s);
        let outcome = if is_overdue { UpstreamOutcome::TimedOut } else { outcome };
        self.round.on_end(now_s, started.at_s, started.in_flight, outcome);
        // Many clients may leave at once, as one that holds many connections does: that is no silence of an
        // upstream that went on responding to them.
        let is_silence =
            outcome.is_silence() && (!is_overdue || self.breaker.is_silent_since(started.at_s));
        if is_silence {
            self.is_slow = outcome == UpstreamOutcome::TimedOut;
            if self.breaker.on_silence(now_s) {
                self.open(now_s);
            }
        } else if outcome.is_response() && self.breaker.on_response(now_s) {
            self.close(now_s);
        }
        if self.round.ends().is_multiple_of(LOOK_ENDS) {
            self.look(now_s);
        }
    }

    /// Says if somebody waits for this upstream: the limit then binds.
    pub fn on_waiting(&mut self, now: Duration, is_awaited: bool) {
        if is_awaited != self.is_awaited {
            self.advance(now.as_secs_f64());
            self.is_awaited = is_awaited;
        }
    }

    /// Sets the time that the caller itself takes, on average, until it notices a response that has arrived. A
    /// caller that is busy takes longer the more is in flight, at an upstream that is as fast as ever: latencies
    /// are judged without it.
    pub const fn set_own_delay(&mut self, delay: Duration) {
        self.own_delay_s = delay.as_secs_f64();
    }

    /// Takes an inference server's report of its running and waiting requests. What a server reports wins over
    /// what the law found, for 10 s.
    pub fn on_report(&mut self, now: Duration, running: u32, waiting: u32) {
        let now_s = now.as_secs_f64();
        self.advance(now_s);
        let busy_at = self.is_busy(now_s).then_some(self.level);
        let gateways = self.config.gateways;
        if self.reported.on_report(now_s, running, waiting, gateways, busy_at) {
            self.last_move = LimitMove::Reported;
        }
        if let Some(limit) = self.reported.limit() {
            self.level = limit;
        }
    }

    /// Records that the upstream is back: it was reached again, or began to respond. Closes an open breaker,
    /// before a long response has ended; returns `true` if it did.
    pub fn on_recovery(&mut self, now: Duration) -> bool {
        let now_s = now.as_secs_f64();
        let is_back = self.breaker.on_response(now_s);
        if is_back {
            self.advance(now_s);
            self.close(now_s);
        }
        is_back
    }

    /// Ends a round that is complete. To be called a few times a second, also without traffic.
    pub fn tick(&mut self, now: Duration) {
        let now_s = now.as_secs_f64();
        self.advance(now_s);
        if let Some(limit) = self.reported.expire(now_s) {
            self.state.resume(limit, LimitMove::Reported);
            self.begin_round(now_s);
        }
        self.look(now_s);
    }

    /// Cause of the last change.
    #[must_use]
    pub const fn last_move(&self) -> LimitMove {
        self.last_move
    }

    /// State for statistics and metrics.
    #[must_use]
    pub fn snapshot(&self) -> LimitSnapshot {
        LimitSnapshot {
            found: self.reported.limit().unwrap_or(self.state.found()),
            limit: self.limit(),
            in_flight: self.in_flight,
            last_move: self.last_move,
            elasticity: self.state.elasticity,
            baseline_s: self.state.baseline.map(|baseline| exp(baseline.mean) - UNNOTICED_S),
            open: self.breaker.is_open(),
        }
    }

    /// Returns `true` if a request took so long that its client gave up on an overloaded upstream: the bound of
    /// gross overload, baseline / e*². Otherwise an upstream that is slower than its clients wait would teach
    /// nothing.
    fn is_overdue(&self, elapsed_s: f64) -> bool {
        let elasticity = self.config.goal.elasticity();
        let baseline = self.state.baseline.map(|baseline| exp(baseline.mean));
        let taken_s = elapsed_s + UNNOTICED_S - self.own_delay_s;
        baseline.is_some_and(|baseline_s| taken_s > baseline_s / (elasticity * elasticity))
    }

    fn is_busy(&self, now_s: f64) -> bool {
        self.is_awaited || self.at_upstream(now_s) >= self.level
    }

    /// Requests that are at the upstream, as far as can be known.
    fn at_upstream(&self, now_s: f64) -> u32 {
        self.in_flight.saturating_add(self.abandoned_at(now_s))
    }

    /// Requests that were given up and may still be at the upstream. One that reports counts them itself.
    fn abandoned_at(&self, now_s: f64) -> u32 {
        if self.is_reported() { 0 } else { self.abandoned.count(now_s) }
    }

    fn advance(&mut self, now_s: f64) {
        let is_busy = self.is_busy(now_s);
        self.round.advance(now_s, self.at_upstream(now_s), is_busy);
    }

    fn look(&mut self, now_s: f64) {
        let is_suspended = self.breaker.is_open() || self.reported.limit().is_some();
        let Self { config, state, round, own_delay_s, .. } = self;
        if is_suspended || !round.is_complete(now_s, config, state, *own_delay_s) {
            return;
        }
        let observed = round.observation(now_s, state, *own_delay_s);
        if self.round.failures() == 0 {
            self.resume_at = None;
        }
        let found = self.state.found();
        self.state = step(&self.config, self.state, &observed);
        if self.state.found() != found {
            self.last_move = self.state.last_move();
        }
        self.begin_round(now_s);
    }

    fn begin_round(&mut self, now_s: f64) {
        let was = self.level;
        self.level = self.state.level();
        let after_cut = self.level < was && self.state.last_move().is_cut();
        let is_new_level = self.level != was;
        self.round = Round::begin(now_s, self.in_flight, &self.state, is_new_level, after_cut);
    }

    fn open(&mut self, now_s: f64) {
        let found = self.reported.limit().unwrap_or(self.state.found());
        self.resume_at.get_or_insert((found / 2).max(1));
        // A report from before the outage is one of another server.
        self.reported = Reported::default();
        self.last_move = LimitMove::BreakerOpen;
        self.begin_round(now_s);
    }

    /// Resumes at half of the old limit. After lost connections with a new baseline, and at least with a start:
    /// the upstream may be another one now. One that was only slow is the same, and a baseline from its recovery
    /// would hide the next overload.
    fn close(&mut self, now_s: f64) {
        let mut limit = self.resume_at.unwrap_or(1);
        if !self.is_slow {
            self.state.baseline = None;
            limit = limit.max(self.config.start);
        }
        self.state.resume(limit, LimitMove::BreakerClosed);
        self.last_move = LimitMove::BreakerClosed;
        self.begin_round(now_s);
    }
}
