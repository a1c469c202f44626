use super::backoff::share;
use super::{Decorrelated, RetryAfter};
use std::fmt;
use std::time::Duration;

/// Limits and conditions of retries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all, including the first. 0 and 1 never retry. Default 5.
    pub attempts_max: u32,
    /// Time from the first attempt within which the last one must begin; a client that runs the attempts ends them
    /// then too. Default 60 s.
    pub deadline: Duration,
    /// Waits between attempts. Default 100 ms … 20 s.
    pub backoff: Decorrelated,
    /// Failures that may be retried. Default [`RetryOn::Lost`].
    pub retry_on: RetryOn,
}

/// Failures that may be retried. Each value includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetryOn {
    /// Only requests refused by a server.
    Refused,
    /// Also requests that reached no server.
    Unreachable,
    /// Also requests sent and not answered, if they are [`Safety::Idempotent`].
    #[default]
    Lost,
}

/// Idempotence of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Safety {
    /// Not idempotent: never repeated if it may have started.
    #[default]
    Once,
    /// Idempotent: running it twice has the effect of running it once.
    Idempotent,
}

/// Class of a failure with respect to retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server refused to process the request now. The request has not started.
    Refused,
    /// There was no connection to send the request on. The request has not started.
    Unreachable,
    /// The request was sent, or may have been, and not answered: a reset, a timeout. The request may have started.
    Lost,
    /// A retry would fail the same way.
    Final,
}

/// A failed attempt, and the history of its request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailedAttempt {
    /// Failure of the last attempt.
    pub failure: Failure,
    /// Idempotence of the request.
    pub safety: Safety,
    /// Attempts so far, including this one.
    pub attempts: u32,
    /// Time since the first attempt began.
    pub elapsed: Duration,
    /// Wait before this attempt; zero for the first.
    pub previous_wait: Duration,
    /// Retry hint of the server, if it gave one.
    pub hint: Option<RetryAfter>,
}

/// Decision after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Retry after this wait.
    Retry {
        /// Wait, at least as long as the server asked for.
        after: Duration,
    },
    /// Do not retry.
    GiveUp {
        /// First reason found.
        reason: GiveUpReason,
    },
}

/// Reason for not retrying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GiveUpReason {
    /// A retry would change nothing.
    Final,
    /// The request may have started, and is not idempotent.
    MayHaveStarted,
    /// The policy does not retry this kind of failure.
    NotByPolicy,
    /// The server forbade retries.
    Forbidden,
    /// All attempts are used up.
    Attempts,
    /// The next attempt would begin after the deadline.
    Deadline,
    /// The retry budget is spent. Returned by users of a [`RetryBudget`](super::RetryBudget), not by [`decide`],
    /// which spends nothing.
    Budget,
}

/// Decides on a retry and its wait; `random` in 0 … 1 spreads the waits.
///
/// The server's hint takes the place of the backoff, and is a floor: jitter adds up to half of the hint, and never
/// subtracts. Half of the hint, because many clients may have got the same hint: ten seconds that all end within a
/// tenth of a second help nobody. No more than that, because the server may have given each client its own time. A
/// hint of zero is none. If the wait would end at or after the deadline, the decision is to give up at once.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::retry::*;
///
/// let policy = RetryPolicy::default();
/// let refused = FailedAttempt::first(Failure::Refused, Safety::Once);
/// let ten_s = Some(RetryAfter::Wait(Duration::from_secs(10)));
/// let hinted = FailedAttempt { hint: ten_s, ..refused };
/// assert_eq!(decide(&policy, &hinted, 0.0), Decision::Retry { after: Duration::from_secs(10) });
/// assert_eq!(decide(&policy, &hinted, 1.0), Decision::Retry { after: Duration::from_secs(15) });
///
/// let lost = FailedAttempt::first(Failure::Lost, Safety::Once);
/// assert_eq!(decide(&policy, &lost, 0.5), Decision::GiveUp { reason: GiveUpReason::MayHaveStarted });
/// ```
#[must_use]
pub fn decide(policy: &RetryPolicy, attempt: &FailedAttempt, random: f64) -> Decision {
    match policy.after(attempt, random) {
        Ok(after) => Decision::Retry { after },
        Err(reason) => Decision::GiveUp { reason },
    }
}

// === impl RetryPolicy ===

impl RetryPolicy {
    fn after(&self, attempt: &FailedAttempt, random: f64) -> Result<Duration, GiveUpReason> {
        self.allows(attempt.failure, attempt.safety)?;
        if attempt.hint == Some(RetryAfter::Never) {
            return Err(GiveUpReason::Forbidden);
        }
        if attempt.attempts >= self.attempts_max {
            return Err(GiveUpReason::Attempts);
        }
        let after = self.wait(attempt, random);
        if attempt.elapsed.saturating_add(after) >= self.deadline {
            return Err(GiveUpReason::Deadline);
        }
        Ok(after)
    }

    fn allows(&self, failure: Failure, safety: Safety) -> Result<(), GiveUpReason> {
        let needed = match (failure, safety) {
            (Failure::Final, _) => return Err(GiveUpReason::Final),
            (Failure::Lost, Safety::Once) => return Err(GiveUpReason::MayHaveStarted),
            (Failure::Lost, Safety::Idempotent) => RetryOn::Lost,
            (Failure::Unreachable, _) => RetryOn::Unreachable,
            (Failure::Refused, _) => RetryOn::Refused,
        };
        if self.retry_on >= needed { Ok(()) } else { Err(GiveUpReason::NotByPolicy) }
    }

    fn wait(&self, attempt: &FailedAttempt, random: f64) -> Duration {
        match attempt.hint {
            Some(RetryAfter::Wait(floor)) if !floor.is_zero() => {
                floor.saturating_add(share(floor / 2, random))
            }
            Some(_) | None => self.backoff.next(attempt.previous_wait, random),
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
    /// True if the request has certainly not started.
    #[must_use]
    pub fn not_started(self) -> bool {
        matches!(self, Self::Refused | Self::Unreachable)
    }
}

// === impl FailedAttempt ===

impl FailedAttempt {
    /// First attempt, failed at once and without a hint from the server.
    #[must_use]
    pub fn first(failure: Failure, safety: Safety) -> Self {
        Self {
            failure,
            safety,
            attempts: 1,
            elapsed: Duration::ZERO,
            previous_wait: Duration::ZERO,
            hint: None,
        }
    }
}

// === impl GiveUpReason ===

impl fmt::Display for GiveUpReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Final => "a retry would change nothing",
            Self::MayHaveStarted => "the request may have started and is not idempotent",
            Self::NotByPolicy => "the policy does not retry this failure",
            Self::Forbidden => "the server forbade retries",
            Self::Attempts => "all attempts are used up",
            Self::Deadline => "the next attempt would begin after the deadline",
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

    fn reason(policy: &RetryPolicy, attempt: FailedAttempt) -> Option<GiveUpReason> {
        match decide(policy, &attempt, 0.5) {
            Decision::Retry { .. } => None,
            Decision::GiveUp { reason } => Some(reason),
        }
    }

    #[test]
    fn only_what_has_not_started_or_may_run_twice_is_repeated() {
        use Failure::*;
        use Safety::*;
        for (failure, safety, expected) in [
            (Refused, Once, None),
            (Unreachable, Once, None),
            (Lost, Once, Some(GiveUpReason::MayHaveStarted)),
            (Final, Once, Some(GiveUpReason::Final)),
            (Refused, Idempotent, None),
            (Unreachable, Idempotent, None),
            (Lost, Idempotent, None),
            (Final, Idempotent, Some(GiveUpReason::Final)),
        ] {
            let found = reason(&POLICY, FailedAttempt::first(failure, safety));
            assert_eq!(found, expected, "{failure:?} {safety:?}");
        }
    }

    #[test]
    fn the_policy_says_after_which_failures() {
        let attempt = |failure| FailedAttempt::first(failure, Safety::Idempotent);
        for (retry_on, refused, unreachable, lost) in [
            (RetryOn::Refused, true, false, false),
            (RetryOn::Unreachable, true, true, false),
            (RetryOn::Lost, true, true, true),
        ] {
            let policy = RetryPolicy { retry_on, ..POLICY };
            let retries =
                |failure| reason(&policy, attempt(failure)) != Some(GiveUpReason::NotByPolicy);
            let found = [Failure::Refused, Failure::Unreachable, Failure::Lost].map(retries);
            assert_eq!(found, [refused, unreachable, lost], "{retry_on:?}");
        }
    }

    #[test]
    fn tries_and_time_are_bounded() {
        let refused = FailedAttempt::first(Failure::Refused, Safety::Once);
        assert_eq!(reason(&POLICY, FailedAttempt { attempts: 2, ..refused }), None);
        assert_eq!(
            reason(&POLICY, FailedAttempt { attempts: 3, ..refused }),
            Some(GiveUpReason::Attempts)
        );
        let never = RetryPolicy { attempts_max: 0, ..POLICY };
        assert_eq!(reason(&never, refused), Some(GiveUpReason::Attempts));
        let late = FailedAttempt { elapsed: POLICY.deadline, ..refused };
        assert_eq!(reason(&POLICY, late), Some(GiveUpReason::Deadline));
    }

    #[test]
    fn a_wait_beyond_the_deadline_is_not_begun() {
        let wait = |seconds| Some(RetryAfter::Wait(Duration::from_secs(seconds)));
        let refused = FailedAttempt::first(Failure::Refused, Safety::Once);
        assert_eq!(reason(&POLICY, FailedAttempt { hint: wait(5), ..refused }), None);
        for seconds in [10, 3600, u64::MAX] {
            let hinted = FailedAttempt { hint: wait(seconds), ..refused };
            assert_eq!(reason(&POLICY, hinted), Some(GiveUpReason::Deadline), "{seconds}");
        }
    }

    #[test]
    fn a_server_that_forbids_is_not_asked_again() {
        let refused = FailedAttempt::first(Failure::Refused, Safety::Idempotent);
        let hinted = FailedAttempt { hint: Some(RetryAfter::Never), ..refused };
        assert_eq!(reason(&POLICY, hinted), Some(GiveUpReason::Forbidden));
    }

    #[test]
    fn a_hint_takes_the_place_of_the_backoff_however_long_the_last_wait_was() {
        let refused = FailedAttempt::first(Failure::Refused, Safety::Once);
        let ms = Duration::from_millis;
        let hinted = |hint, previous_wait, random| {
            let hint = Some(RetryAfter::Wait(hint));
            decide(&POLICY, &FailedAttempt { hint, previous_wait, ..refused }, random)
        };
        for previous_wait in [ms(0), ms(5_000)] {
            let longest = Decision::Retry { after: ms(60) };
            assert_eq!(hinted(ms(40), previous_wait, 1.0), longest, "{previous_wait:?}");
        }
        let without = Decision::Retry { after: POLICY.backoff.next(ms(200), 0.5) };
        assert_eq!(hinted(ms(0), ms(200), 0.5), without, "zero is no hint");
    }

    proptest! {
        #[test]
        fn a_wait_is_never_below_what_the_server_said_and_ends_before_the_deadline(
            server in any::<Option<Duration>>(),
            small in proptest::option::of(0..20_000_u64),
            elapsed in 0..12_000_u64,
            previous_wait in any::<Duration>(),
            attempts in 0..5_u32,
            random in any::<f64>(),
        ) {
            let server = small.map(Duration::from_millis).or(server);
            let elapsed = Duration::from_millis(elapsed);
            let attempt = FailedAttempt {
                attempts,
                elapsed,
                previous_wait,
                hint: server.map(RetryAfter::Wait),
                ..FailedAttempt::first(Failure::Refused, Safety::Once)
            };
            if let Decision::Retry { after } = decide(&POLICY, &attempt, random) {
                prop_assert!(after >= server.unwrap_or(POLICY.backoff.base));
                prop_assert!(elapsed + after < POLICY.deadline);
                prop_assert!(attempts < POLICY.attempts_max);
            }
        }
    }
}
