use super::shared_limit::LimitSlot;
use crate::{Outcome, OwnedPermit};
use http::StatusCode;

/// Capacity that one request occupies until its response has ended. Dropping it releases it, as
/// [`Outcome::Ignored`].
#[derive(Debug)]
pub(super) enum Guard {
    Permit(OwnedPermit),
    Slot(LimitSlot),
}

// === impl Guard ===

impl Guard {
    /// Records the status of the response.
    pub(super) fn responded(&mut self, status: StatusCode) {
        if let Self::Slot(slot) = self {
            slot.responded(status);
        }
    }

    pub(super) fn finish(self, outcome: Outcome) {
        match self {
            Self::Permit(permit) => permit.finish(outcome),
            Self::Slot(slot) => slot.finish(outcome),
        }
    }
}
