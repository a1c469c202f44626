use crate::routing::load::Standing;

/// The state of an upstream as an [`Availability`](super::Availability) shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamState {
    /// True if it can be reached.
    pub up: bool,
    /// Its standing towards the smallest request.
    pub standing: Standing,
}

// === impl UpstreamState ===

impl UpstreamState {
    /// Returns `true` if a request finds room.
    pub(super) fn is_free(self) -> bool {
        self.up && self.standing == Standing::Free
    }
}
