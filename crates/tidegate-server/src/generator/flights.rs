use super::driver::Shot;
use super::event::FlightId;
use std::time::Duration;

/// The requests that are under way.
#[derive(Default)]
pub(super) struct Flights {
    places: Vec<Option<Flight>>,
    free: Vec<FlightId>,
}

pub(super) struct Flight {
    pub shot: Shot,
    /// When it was given to a connection.
    pub given: Duration,
    /// How long it waited until there was one.
    pub waited: Duration,
}

// === impl Flights ===

impl Flights {
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub fn add(&mut self, flight: Flight) -> FlightId {
        match self.free.pop() {
            Some(id) => {
                self.places[id] = Some(flight);
                id
            }
            None => {
                self.places.push(Some(flight));
                self.places.len() - 1
            }
        }
    }

    pub fn remove(&mut self, id: FlightId) -> Option<Flight> {
        let flight = self.places.get_mut(id)?.take()?;
        self.free.push(id);
        Some(flight)
    }

    pub fn drain(&mut self) -> Vec<Flight> {
        self.free.clear();
        std::mem::take(&mut self.places).into_iter().flatten().collect()
    }
}
