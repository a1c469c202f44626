use super::{Classifier, ClientShare, RetryBoard};
use crate::config::Config;
use crate::http::{Rejection, RejectionCause, RejectionReason};
use std::sync::Arc;
use std::time::Duration;
use tidegate::admission::Reason;
use tidegate::{InFlightTracker, MessagePriority, Outcome, OwnedPermit, Refusal};

/// Admission of requests: the classifier, the in-flight limits, and the retry advice.
#[derive(Debug)]
pub struct Admission {
    tracker: Arc<InFlightTracker>,
    retry_board: Arc<RetryBoard>,
    classifier: Classifier,
    dry_run: bool,
    exposed: bool,
}

/// The permits of an admitted request: the gateway's and, where its client has a share, that share's. Both end
/// together.
#[derive(Debug)]
pub struct Permits {
    gateway: OwnedPermit,
    share: Option<OwnedPermit>,
}

// === impl Admission ===

impl Admission {
    /// Admission with the limits and clients of a configuration, all of it free.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let admission = &config.admission;
        Self {
            tracker: Arc::new(InFlightTracker::new(admission.limits, admission.sharing)),
            retry_board: Arc::new(RetryBoard::new(admission.retry)),
            classifier: Classifier::new(config),
            dry_run: config.dry_run,
            exposed: !config.listen.address.ip().is_loopback(),
        }
    }

    /// In-flight limits by priority.
    #[must_use]
    pub fn tracker(&self) -> &Arc<InFlightTracker> {
        &self.tracker
    }

    /// Retry advice by priority and limit.
    #[must_use]
    pub fn retry_board(&self) -> &Arc<RetryBoard> {
        &self.retry_board
    }

    /// Priorities and clients of requests.
    #[must_use]
    pub fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    /// Returns true if other hosts reach the data port: then only known clients read snapshots on it.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        self.exposed
    }

    /// Admits a request or explains the refusal. In a dry run `would_reject` is called with each refusal, and the
    /// request is admitted beyond the limit.
    ///
    /// The client's share comes first: a request that it refuses never uses a slot of the gateway.
    ///
    /// # Errors
    ///
    /// The limit that refused. Nothing is held then.
    pub fn admit(
        &self,
        priority: MessagePriority,
        share: Option<&ClientShare>,
        mut would_reject: impl FnMut(RejectionReason),
    ) -> Result<Permits, Rejection> {
        let of_share = |share: &ClientShare| {
            share.try_acquire(priority).or_else(|refusal| {
                let beyond = self.dry_run.then(|| {
                    would_reject(RejectionReason::ClientShare);
                    share.admit_beyond(priority)
                });
                beyond.flatten().ok_or_else(|| {
                    let limit = share.limit(refusal);
                    let cause = RejectionCause::ClientShare { priority: refusal.priority, limit };
                    Rejection::new(cause, share.advice_for_one(refusal))
                })
            })
        };
        let share = share.map(of_share).transpose()?;
        let gateway = self.tracker.try_acquire_owned(priority).or_else(|refusal| {
            let rejection = self.rejection(refusal);
            let beyond = self.dry_run.then(|| {
                would_reject(rejection.reason());
                self.tracker.admit_beyond_limits(priority)
            });
            beyond.flatten().ok_or(rejection)
        })?;
        Ok(Permits { gateway, share })
    }

    /// Updates the retry advice of every client's share, at `now` since any fixed start.
    pub fn observe_shares(&self, now: Duration) {
        for share in self.classifier.shares() {
            share.observe(now);
        }
    }

    fn rejection(&self, refusal: Refusal) -> Rejection {
        let limits = self.tracker.limits();
        let limit = match refusal.reason {
            Reason::GlobalLimit => limits.global_limit,
            Reason::PriorityLimit => limits.of(refusal.priority),
        };
        let retry_after = self.retry_board.advice_for_one(refusal);
        Rejection::new(RejectionCause::of_admission(refusal, limit), retry_after)
    }
}

// === impl Permits ===

impl Permits {
    /// The priority that the request was admitted with.
    #[must_use]
    pub fn priority(&self) -> MessagePriority {
        self.gateway.priority()
    }

    /// Ends both permits.
    pub fn finish(self, outcome: Outcome) {
        self.gateway.finish(outcome);
        if let Some(share) = self.share {
            share.finish(outcome);
        }
    }
}
