use super::{Failure, GiveUpReason, RetryAfter};
use std::error::Error;
use std::fmt;
use std::time::Duration;

/// A try that failed: the error, and what it means for trying again.
///
/// ```
/// use std::time::Duration;
/// use tidegate::retry::{Failed, Failure};
///
/// let failed = Failed::refused("busy").after(Duration::from_secs(1));
/// assert_eq!(failed.failure, Failure::Refused);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed<E> {
    /// The error.
    pub error: E,
    /// Kind of failure: decides whether to retry.
    pub failure: Failure,
    /// The server's Retry-After, if any.
    pub server: Option<RetryAfter>,
}

/// An answer, and what it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<T> {
    /// The answer.
    pub value: T,
    /// Tries in all, the one that was answered included.
    pub attempts: u32,
    /// The time since the first try began.
    pub elapsed: Duration,
}

/// No answer, and there will be no further try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped<Q, E> {
    /// Why there is no further try.
    pub why: GiveUpReason,
    /// The error of the last try that ended; `None` when the deadline cut the very first one off.
    pub last: Option<E>,
    /// Tries in all.
    pub attempts: u32,
    /// The time since the first try began.
    pub elapsed: Duration,
    /// The request, when certainly no try of it was started by anyone: it may be sent elsewhere.
    pub unsent: Option<Q>,
}

// === impl Failed ===

impl<E> Failed<E> {
    /// The server answered that it won't do it now. It has not started.
    pub fn refused(error: E) -> Self {
        Self::new(Failure::Refused, error)
    }

    /// There was no connection to send it on. It has not started.
    pub fn unreachable(error: E) -> Self {
        Self::new(Failure::Unreachable, error)
    }

    /// The request was sent, or may have been, and no answer came. The server may have started it.
    pub fn lost(error: E) -> Self {
        Self::new(Failure::Lost, error)
    }

    /// The request failed in a way that a repetition does not change.
    pub fn fatal(error: E) -> Self {
        Self::new(Failure::Final, error)
    }

    /// A failure of this kind, with nothing said about coming back.
    pub fn new(failure: Failure, error: E) -> Self {
        Self { error, failure, server: None }
    }

    /// The server asked to wait this long.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self { server: Some(RetryAfter::Wait(wait)), ..self }
    }
}

// === impl Stopped ===

impl<Q, E> fmt::Display for Stopped<Q, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = if self.attempts == 1 { "try" } else { "tries" };
        write!(f, "stopped after {} {times} in {:.1?}: {}", self.attempts, self.elapsed, self.why)
    }
}

impl<Q: fmt::Debug, E: Error + 'static> Error for Stopped<Q, E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.last.as_ref().map(|error| error as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_says_how_often_and_why() {
        let stopped: Stopped<(), ()> = Stopped {
            why: GiveUpReason::Budget,
            last: None,
            attempts: 3,
            elapsed: Duration::from_millis(1_500),
            unsent: None,
        };
        let expected = "stopped after 3 tries in 1.5s: the retry budget is spent";
        assert_eq!(stopped.to_string(), expected);
    }
}
