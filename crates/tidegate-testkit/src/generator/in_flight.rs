use super::driver::ScheduledRequest;
use std::time::Duration;

/// Index of a request in [`InFlight`].
pub(super) type FlightId = usize;

/// Requests in flight.
#[derive(Default)]
pub(super) struct InFlight {
    entries: Vec<Option<InFlightRequest>>,
    free: Vec<FlightId>,
}

/// Request in flight.
pub(super) struct InFlightRequest {
    pub scheduled: ScheduledRequest,
    /// Time at which a connection got it.
    pub dispatched: Duration,
    /// Wait for a connection.
    pub waited: Duration,
}

// === impl InFlight ===

impl InFlight {
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub fn add(&mut self, flight: InFlightRequest) -> FlightId {
        match self.free.pop() {
            Some(id) => {
                self.entries[id] = Some(flight);
                id
            }
            None => {
                self.entries.push(Some(flight));
                self.entries.len() - 1
            }
        }
    }

    pub fn remove(&mut self, id: FlightId) -> Option<InFlightRequest> {
        let flight = self.entries.get_mut(id)?.take()?;
        self.free.push(id);
        Some(flight)
    }

    pub fn drain(&mut self) -> Vec<InFlightRequest> {
        self.free.clear();
        std::mem::take(&mut self.entries).into_iter().flatten().collect()
    }
}
