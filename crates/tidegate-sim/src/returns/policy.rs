use std::time::Duration;
use tidegate_core::retry::{
    Decision, FailedAttempt, Failure, RetryAfter, RetryPolicy, Safety, decide, full_jitter,
};

/// A client's rule for its next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnPolicy {
    /// The advice of the server.
    Advised(AdvisedClient),
    /// The same delay every time, plus up to half of it.
    Fixed(Duration),
    /// Exponential backoff with full jitter.
    Backoff {
        /// The first bound.
        base: Duration,
        /// The last bound.
        cap: Duration,
    },
    /// No refusals: a queue in the order of arrival. No retry policy can be faster.
    Queue,
}

/// A client that honours the advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdvisedClient {
    /// Waits for exactly the advised time, as the SDKs of model providers do.
    Exact,
    /// Adds jitter as `tidegate::retry` does.
    Library,
    /// Reads only `Retry-After`, which has whole seconds.
    Seconds,
}

// === impl ReturnPolicy ===

impl ReturnPolicy {
    /// Returns the wait after the `attempts`-th attempt of a request was refused with this advice.
    pub(super) fn wait(
        self,
        attempts: u32,
        previous_wait: Duration,
        advice: Duration,
        random: f64,
    ) -> Duration {
        match self {
            Self::Advised(AdvisedClient::Exact) | Self::Queue => advice,
            Self::Advised(AdvisedClient::Seconds) => {
                Duration::from_secs(advice.as_millis().div_ceil(1000).max(1) as u64)
            }
            Self::Advised(AdvisedClient::Library) => library(previous_wait, advice, random),
            Self::Fixed(delay) => delay + delay.mul_f64(random / 2.0),
            Self::Backoff { base, cap } => full_jitter(base, cap, attempts - 1, random),
        }
    }
}

/// The wait of the shipped retry client, without its bounds on attempts and time: here all work has to be done.
fn library(previous_wait: Duration, advice: Duration, random: f64) -> Duration {
    let policy =
        RetryPolicy { attempts_max: u32::MAX, deadline: Duration::MAX, ..RetryPolicy::default() };
    let attempt = FailedAttempt {
        previous_wait,
        hint: Some(RetryAfter::Wait(advice)),
        ..FailedAttempt::first(Failure::Refused, Safety::Once)
    };
    match decide(&policy, &attempt, random) {
        Decision::Retry { after } => after,
        Decision::GiveUp { .. } => advice,
    }
}
