use super::lanes::{LANES, lane};
use crate::admission::MessagePriority;
use crate::routing::load::Standing;

/// The state of an upstream as an [`Availability`](super::Availability) shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamState {
    /// True if it can be reached.
    pub up: bool,
    pub(super) standings: [Standing; LANES],
}

// === impl UpstreamState ===

impl UpstreamState {
    /// Returns the upstream's standing towards a request of this priority.
    #[must_use]
    pub fn standing(&self, priority: MessagePriority) -> Standing {
        self.standings[lane(priority)]
    }

    /// Replaces the standing towards requests of this priority.
    pub fn set_standing(&mut self, priority: MessagePriority, standing: Standing) {
        self.standings[lane(priority)] = standing;
    }

    /// Returns for each lane `true` if a request finds room.
    pub(super) fn free(self) -> [bool; LANES] {
        self.standings.map(|standing| self.up && standing == Standing::Free)
    }
}
