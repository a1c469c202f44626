use super::board::Availability;
use super::upstream_state::UpstreamState;
use crate::routing::load::{Charge, LoadAccount};
use crate::routing::thresholds::BusyThresholds;

/// One upstream's entry in the [`Availability`] of a pool. Its owner keeps it beside the upstream's load and
/// publishes after each change.
#[derive(Debug)]
pub struct AvailabilityEntry {
    index: usize,
    thresholds: BusyThresholds,
    shown: Option<UpstreamState>,
}

// === impl AvailabilityEntry ===

impl AvailabilityEntry {
    /// Creates the entry at `index` of a pool whose model has these thresholds. Nothing is published yet.
    #[must_use]
    pub fn new(index: usize, thresholds: BusyThresholds) -> Self {
        Self { index, thresholds, shown: None }
    }

    /// Replaces the thresholds; effective with the next publication.
    pub fn set_thresholds(&mut self, thresholds: BusyThresholds) {
        self.thresholds = thresholds;
    }

    /// Returns the state that was last published.
    #[must_use]
    pub fn shown(&self) -> Option<UpstreamState> {
        self.shown
    }

    /// Judges the upstream towards the smallest request.
    #[must_use]
    pub fn judge(&self, account: &LoadAccount, up: bool) -> UpstreamState {
        UpstreamState { up, standing: account.standing(Charge::LEAST, &self.thresholds) }
    }

    /// Publishes the upstream's state and number of requests. Only one thread at a time may call it for one
    /// entry.
    pub fn publish(&mut self, availability: &Availability, shown: UpstreamState, requests: u64) {
        if self.shown != Some(shown) {
            availability.show(self.index, shown);
            self.shown = Some(shown);
        }
        availability.show_load(self.index, shown, requests);
    }
}
