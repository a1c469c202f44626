use super::{ClientShare, Rejection};
use crate::gateway::Shared;
use std::time::Duration;
use tidegate::{MessagePriority, Outcome, OwnedPermit, Refusal};

/// What a request holds while it is served: a place of the gateway's and, where its client has a share, one of
/// that. Both end together.
#[derive(Debug)]
pub struct Places {
    gateway: OwnedPermit,
    share: Option<OwnedPermit>,
}

/// A request that found no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlace {
    /// A limit of the gateway's is reached.
    Limit(Refusal),
    /// The client's requests hold as much of one as they may.
    Share {
        /// Which, and for what priority.
        refusal: Refusal,
        /// How many that is.
        limit: u16,
        /// When it should come back.
        retry_after: Duration,
    },
}

/// Takes the places for a request. In a dry run `would_reject` hears of each refusal, and the request gets a place
/// beyond the limit.
///
/// The share comes first: what it refuses never holds a place of the gateway's, not even for a moment.
///
/// # Errors
///
/// Which limit refused. Nothing is held then.
pub fn admit(
    shared: &Shared,
    priority: MessagePriority,
    share: Option<&ClientShare>,
    mut would_reject: impl FnMut(Rejection),
) -> Result<Places, NoPlace> {
    let dry_run = shared.config.dry_run;
    let of_share = |share: &ClientShare| {
        share.try_admit(priority).or_else(|refusal| {
            let beyond = dry_run.then(|| {
                would_reject(Rejection::ClientShare);
                share.admit_beyond(priority)
            });
            beyond.flatten().ok_or_else(|| NoPlace::Share {
                refusal,
                limit: share.limit(refusal),
                retry_after: share.advice_for_one(refusal),
            })
        })
    };
    let share = share.map(of_share).transpose()?;
    let tracker = &shared.tracker;
    let gateway = tracker.try_admit_owned(priority).or_else(|refusal| {
        let beyond = dry_run.then(|| {
            would_reject(Rejection::of_admission(refusal));
            tracker.admit_beyond_limits(priority)
        });
        beyond.flatten().ok_or(NoPlace::Limit(refusal))
    })?;
    Ok(Places { gateway, share })
}

// === impl Places ===

impl Places {
    /// The priority they were granted for.
    #[must_use]
    pub fn priority(&self) -> MessagePriority {
        self.gateway.priority()
    }

    /// Ends both.
    pub fn finish(self, outcome: Outcome) {
        self.gateway.finish(outcome);
        if let Some(share) = self.share {
            share.finish(outcome);
        }
    }
}

// === impl NoPlace ===

impl NoPlace {
    /// What it counts as.
    #[must_use]
    pub fn rejection(&self) -> Rejection {
        match self {
            Self::Limit(refusal) => Rejection::of_admission(*refusal),
            Self::Share { .. } => Rejection::ClientShare,
        }
    }
}
