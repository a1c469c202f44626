use super::{
    Answered, BudgetLimits, BudgetUse, Decision, Failed, FailedAttempt, Failure, GiveUpReason,
    RetryBudget, RetryPolicy, Safety, Stopped, decide,
};
use crate::rng::Rng;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// For deadlines beyond what a clock can tell: as good as none, and within its range.
const FAR_AWAY: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Runs operations and repeats those that failed, within its policy and a budget that all clones share.
///
/// Make one for each server or fleet and clone it: a budget bounds what it sees. See the [module](super) for
/// what it promises and an example.
#[derive(Clone, Debug)]
pub struct RetryClient {
    policy: RetryPolicy,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    budget: RetryBudget,
    rng: Rng,
    start: Instant,
}

/// One request on its way through its tries.
struct Run<E> {
    safety: Safety,
    started: Instant,
    attempts: u32,
    previous_wait: Duration,
    last: Option<E>,
    /// No try so far can have been started by anyone.
    untouched: bool,
}

// === impl RetryClient ===

impl RetryClient {
    /// A client with a budget of its own.
    #[must_use]
    pub fn new(policy: RetryPolicy, limits: BudgetLimits) -> Self {
        let shared = Shared {
            budget: RetryBudget::new(limits),
            rng: Rng::from_process(),
            start: Instant::now(),
        };
        Self { policy, shared: Arc::new(shared) }
    }

    /// The same client with another policy: the budget stays shared.
    #[must_use]
    pub fn with_policy(&self, policy: RetryPolicy) -> Self {
        Self { policy, shared: Arc::clone(&self.shared) }
    }

    /// The policy of this clone.
    #[must_use]
    pub fn policy(&self) -> &RetryPolicy {
        &self.policy
    }

    /// Requests and retries that the budget counted within its last window, from all clones.
    #[must_use]
    pub fn budget_use(&self) -> BudgetUse {
        self.shared.budget.in_use(self.now())
    }

    /// Runs an operation until it is answered or there is a reason to stop.
    ///
    /// The operation is shown the request, of which each try takes what it needs, so that it can be tried
    /// again and handed back. It says by the [`Failed`] it returns whether a try may have started. It is cut off
    /// at the policy's deadline; give it a shorter timeout of its own, as [`Failed::lost`], where one try should
    /// not use up all the time.
    ///
    /// # Errors
    ///
    /// [`Stopped`], with the last error, the number of tries and the reason. The request is in it when nobody
    /// can have started it.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timers enabled.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the try in progress, or ends the wait for the next one, which is then never
    /// made. What the budget granted for it stays spent. Nothing else is held.
    pub async fn run<Q, T, E, F>(
        &self,
        request: Q,
        safety: Safety,
        mut operation: impl FnMut(&Q) -> F,
    ) -> Result<Answered<T>, Stopped<Q, E>>
    where
        F: Future<Output = Result<T, Failed<E>>>,
    {
        self.shared.budget.record_request(self.now());
        let mut run = Run::new(safety);
        let deadline = run.deadline(&self.policy);
        loop {
            run.attempts += 1;
            let failed = match timeout_at(deadline, operation(&request)).await {
                Ok(Ok(value)) => return Ok(run.answered(value)),
                Ok(Err(failed)) => failed,
                Err(_) => {
                    run.untouched = false;
                    return Err(run.stopped(GiveUpReason::Deadline, request));
                }
            };
            match self.next_wait(&mut run, failed) {
                Ok(after) => sleep(after).await,
                Err(why) => return Err(run.stopped(why, request)),
            }
        }
    }

    /// The wait before the next try, paid for.
    fn next_wait<E>(&self, run: &mut Run<E>, failed: Failed<E>) -> Result<Duration, GiveUpReason> {
        let tried = run.failed(failed);
        match decide(&self.policy, &tried, self.shared.rng.fraction()) {
            // Taken before the wait and not after it: who can't be granted a retry should not wait for it.
            Decision::Retry { .. } if !self.shared.budget.try_retry(self.now()) => {
                Err(GiveUpReason::Budget)
            }
            Decision::Retry { after } => {
                run.previous_wait = after;
                Ok(after)
            }
            Decision::GiveUp { reason } => Err(reason),
        }
    }

    fn now(&self) -> Duration {
        self.shared.start.elapsed()
    }
}

impl Default for RetryClient {
    fn default() -> Self {
        Self::new(RetryPolicy::default(), BudgetLimits::default())
    }
}

// === impl Run ===

impl<E> Run<E> {
    fn new(safety: Safety) -> Self {
        Self {
            safety,
            started: Instant::now(),
            attempts: 0,
            previous_wait: Duration::ZERO,
            last: None,
            untouched: true,
        }
    }

    fn deadline(&self, policy: &RetryPolicy) -> Instant {
        self.started.checked_add(policy.deadline).unwrap_or_else(|| self.started + FAR_AWAY)
    }

    fn failed(&mut self, failed: Failed<E>) -> FailedAttempt {
        let Failed { error, failure, server } = failed;
        self.last = Some(error);
        self.untouched &= Failure::not_started(failure);
        FailedAttempt {
            failure,
            safety: self.safety,
            attempts: self.attempts,
            elapsed: self.started.elapsed(),
            previous_wait: self.previous_wait,
            hint: server,
        }
    }

    fn answered<T>(self, value: T) -> Answered<T> {
        Answered { value, attempts: self.attempts, elapsed: self.started.elapsed() }
    }

    fn stopped<Q>(self, why: GiveUpReason, request: Q) -> Stopped<Q, E> {
        Stopped {
            why,
            last: self.last,
            attempts: self.attempts,
            elapsed: self.started.elapsed(),
            unsent: self.untouched.then_some(request),
        }
    }
}
