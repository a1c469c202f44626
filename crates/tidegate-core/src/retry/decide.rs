use super::backoff::share;
use super::{Decorrelated, RetryAfter};
use std::fmt;
use std::time::Duration;

/// How often, how long and after what a request is tried again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Tries in all, the first included. 0 and 1 never retry. Default 5.
    pub attempts_max: u32,
    /// The time from the first try within which the last one must begin; a client that runs the tries ends them
    /// then too. Default 60 s.
    pub deadline: Duration,
    /// The waits between tries. Default 100 ms … 20 s.
    pub backoff: Decorrelated,
    /// What may be tried again. Default [`RetryOn::Lost`].
    pub retry_on: RetryOn,
}

/// What may be tried again. Each includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetryOn {
    /// Only what a server has refused.
    Refused,
    /// Also what reached no server.
    Unreachable,
    /// Also what was sent and not answered, where it is [`Safety::Idempotent`].
    #[default]
    Lost,
}

/// Whether a request may run twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Safety {
    /// It may not: what may have started is not repeated.
    #[default]
    Once,
    /// It may: running it twice is the same as running it once.
    Idempotent,
}

/// How a try failed, as far as repeating it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server answered that it won't do it now. It has not started.
    Refused,
    /// There was no connection to send it on. It has not started.
    Unreachable,
    /// It was sent, or may have been, and no answer came: a reset, a timeout. It may have started.
    Lost,
    /// It failed in a way that a repetition won't change.
    Final,
}

/// A try that failed, and those before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// How the last try failed.
    pub failure: Failure,
    /// Whether the request may run twice.
    pub safety: Safety,
    /// Tries so far, this one included.
    pub attempts: u32,
    /// The time since the first try began.
    pub elapsed: Duration,
    /// The wait before this try; zero for the first.
    pub previous_wait: Duration,
    /// What the server said about coming back, if it did.
    pub server: Option<RetryAfter>,
}

/// What to do after a try that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Try again after this wait.
    Retry {
        /// At least what the server asked for.
        after: Duration,
    },
    /// Do not try again.
    GiveUp {
        /// The first reason that was found.
        why: GiveUp,
    },
}

/// Why there is no further try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GiveUp {
    /// A repetition would change nothing.
    Final,
    /// It may have started, and may not run twice.
    MayHaveStarted,
    /// The policy does not retry after this kind of failure.
    NotByPolicy,
    /// The server asked not to be asked again.
    Forbidden,
    /// All tries are used up.
    Attempts,
    /// The next try would begin after the deadline.
    Deadline,
    /// The retry budget is spent. Said by whoever asks the [`RetryBudget`](super::RetryBudget), not by
    /// [`decide`], which spends nothing.
    Budget,
}

/// Whether to try again, and when; `chance` in 0 … 1 spreads the waits.
///
/// What the server asked for is a floor: chance adds to it, up to the next backoff or half of the wait,
/// whichever is more, and never takes from it. The half is for those who were all told the same: a wait of ten
/// seconds that all of them end within a tenth of one helps nobody. A wait that ends at the deadline or after it
/// is given up at once rather than slept.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::retry::*;
///
/// let policy = RetryPolicy::default();
/// let refused = Tried::first(Failure::Refused, Safety::Once);
/// let ten_s = Some(RetryAfter::Wait(Duration::from_secs(10)));
/// let told = Tried { server: ten_s, ..refused };
/// assert_eq!(decide(&policy, &told, 0.0), Decision::Retry { after: Duration::from_secs(10) });
/// assert_eq!(decide(&policy, &told, 1.0), Decision::Retry { after: Duration::from_secs(15) });
///
/// let lost = Tried::first(Failure::Lost, Safety::Once);
/// assert_eq!(decide(&policy, &lost, 0.5), Decision::GiveUp { why: GiveUp::MayHaveStarted });
/// ```
#[must_use]
pub fn decide(policy: &RetryPolicy, tried: &Tried, chance: f64) -> Decision {
    match policy.after(tried, chance) {
        Ok(after) => Decision::Retry { after },
        Err(why) => Decision::GiveUp { why },
    }
}

// === impl RetryPolicy ===

impl RetryPolicy {
    fn after(&self, tried: &Tried, chance: f64) -> Result<Duration, GiveUp> {
        self.allows(tried.failure, tried.safety)?;
        if tried.server == Some(RetryAfter::Never) {
            return Err(GiveUp::Forbidden);
        }
        if tried.attempts >= self.attempts_max {
            return Err(GiveUp::Attempts);
        }
        let after = self.wait(tried, chance);
        if tried.elapsed.saturating_add(after) >= self.deadline {
            return Err(GiveUp::Deadline);
        }
        Ok(after)
    }

    fn allows(&self, failure: Failure, safety: Safety) -> Result<(), GiveUp> {
        let needed = match (failure, safety) {
            (Failure::Final, _) => return Err(GiveUp::Final),
            (Failure::Lost, Safety::Once) => return Err(GiveUp::MayHaveStarted),
            (Failure::Lost, Safety::Idempotent) => RetryOn::Lost,
            (Failure::Unreachable, _) => RetryOn::Unreachable,
            (Failure::Refused, _) => RetryOn::Refused,
        };
        if self.retry_on >= needed { Ok(()) } else { Err(GiveUp::NotByPolicy) }
    }

    fn wait(&self, tried: &Tried, chance: f64) -> Duration {
        match tried.server {
            Some(RetryAfter::Wait(floor)) => {
                let spread = self.backoff.ceiling(tried.previous_wait).max(floor / 2);
                floor.saturating_add(share(spread, chance))
            }
            Some(RetryAfter::Never) | None => self.backoff.next(tried.previous_wait, chance),
        }
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts_max: 5,
            deadline: Duration::from_secs(60),
            backoff: Decorrelated::default(),
            retry_on: RetryOn::default(),
        }
    }
}

// === impl Failure ===

impl Failure {
    /// Whether the request has certainly not been started by anyone.
    #[must_use]
    pub fn not_started(self) -> bool {
        matches!(self, Self::Refused | Self::Unreachable)
    }
}

// === impl Tried ===

impl Tried {
    /// A first try that failed at once, with nothing said by the server.
    #[must_use]
    pub fn first(failure: Failure, safety: Safety) -> Self {
        Self {
            failure,
            safety,
            attempts: 1,
            elapsed: Duration::ZERO,
            previous_wait: Duration::ZERO,
            server: None,
        }
    }
}

// === impl GiveUp ===

impl fmt::Display for GiveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Final => "a repetition would change nothing",
            Self::MayHaveStarted => "it may have started and may not run twice",
            Self::NotByPolicy => "the policy does not retry after this",
            Self::Forbidden => "the server asked not to be asked again",
            Self::Attempts => "all tries are used up",
            Self::Deadline => "the next try would be past the deadline",
            Self::Budget => "the retry budget is spent",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: RetryPolicy = RetryPolicy {
        attempts_max: 3,
        deadline: Duration::from_secs(10),
        backoff: Decorrelated { base: Duration::from_millis(100), cap: Duration::from_secs(20) },
        retry_on: RetryOn::Lost,
    };

    fn why(policy: &RetryPolicy, tried: Tried) -> Option<GiveUp> {
        match decide(policy, &tried, 0.5) {
            Decision::Retry { .. } => None,
            Decision::GiveUp { why } => Some(why),
        }
    }

    #[test]
    fn only_what_has_not_started_or_may_run_twice_is_repeated() {
        use Failure::*;
        use Safety::*;
        for (failure, safety, expected) in [
            (Refused, Once, None),
            (Unreachable, Once, None),
            (Lost, Once, Some(GiveUp::MayHaveStarted)),
            (Final, Once, Some(GiveUp::Final)),
            (Refused, Idempotent, None),
            (Unreachable, Idempotent, None),
            (Lost, Idempotent, None),
            (Final, Idempotent, Some(GiveUp::Final)),
        ] {
            let found = why(&POLICY, Tried::first(failure, safety));
            assert_eq!(found, expected, "{failure:?} {safety:?}");
        }
    }

    #[test]
    fn the_policy_says_after_which_failures() {
        let tried = |failure| Tried::first(failure, Safety::Idempotent);
        for (retry_on, refused, unreachable, lost) in [
            (RetryOn::Refused, true, false, false),
            (RetryOn::Unreachable, true, true, false),
            (RetryOn::Lost, true, true, true),
        ] {
            let policy = RetryPolicy { retry_on, ..POLICY };
            let retries = |failure| why(&policy, tried(failure)) != Some(GiveUp::NotByPolicy);
            let found = [Failure::Refused, Failure::Unreachable, Failure::Lost].map(retries);
            assert_eq!(found, [refused, unreachable, lost], "{retry_on:?}");
        }
    }

    #[test]
    fn tries_and_time_are_bounded() {
        let refused = Tried::first(Failure::Refused, Safety::Once);
        assert_eq!(why(&POLICY, Tried { attempts: 2, ..refused }), None);
        assert_eq!(why(&POLICY, Tried { attempts: 3, ..refused }), Some(GiveUp::Attempts));
        let never = RetryPolicy { attempts_max: 0, ..POLICY };
        assert_eq!(why(&never, refused), Some(GiveUp::Attempts));
        let late = Tried { elapsed: POLICY.deadline, ..refused };
        assert_eq!(why(&POLICY, late), Some(GiveUp::Deadline));
    }

    #[test]
    fn a_wait_beyond_the_deadline_is_not_begun() {
        let wait = |seconds| Some(RetryAfter::Wait(Duration::from_secs(seconds)));
        let refused = Tried::first(Failure::Refused, Safety::Once);
        assert_eq!(why(&POLICY, Tried { server: wait(5), ..refused }), None);
        for seconds in [10, 3600, u64::MAX] {
            let told = Tried { server: wait(seconds), ..refused };
            assert_eq!(why(&POLICY, told), Some(GiveUp::Deadline), "{seconds}");
        }
    }

    #[test]
    fn a_server_that_forbids_is_not_asked_again() {
        let refused = Tried::first(Failure::Refused, Safety::Idempotent);
        let told = Tried { server: Some(RetryAfter::Never), ..refused };
        assert_eq!(why(&POLICY, told), Some(GiveUp::Forbidden));
    }

    proptest! {
        #[test]
        fn a_wait_is_never_below_what_the_server_said_and_ends_before_the_deadline(
            server in any::<Option<Duration>>(),
            small in proptest::option::of(0..20_000_u64),
            elapsed in 0..12_000_u64,
            previous_wait in any::<Duration>(),
            attempts in 0..5_u32,
            chance in any::<f64>(),
        ) {
            let server = small.map(Duration::from_millis).or(server);
            let elapsed = Duration::from_millis(elapsed);
            let tried = Tried {
                attempts,
                elapsed,
                previous_wait,
                server: server.map(RetryAfter::Wait),
                ..Tried::first(Failure::Refused, Safety::Once)
            };
            if let Decision::Retry { after } = decide(&POLICY, &tried, chance) {
                prop_assert!(after >= server.unwrap_or(POLICY.backoff.base));
                prop_assert!(elapsed + after < POLICY.deadline);
                prop_assert!(attempts < POLICY.attempts_max);
            }
        }
    }
}
