use std::fmt;
use std::time::Duration;

/// Clients with requests, and the slots that serve them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnCase {
    /// Clients, each with one request at a time.
    pub clients: u32,
    /// Requests of each client.
    pub requests_each: u32,
    /// The time between the end of a client's request and its next one.
    pub pause: Duration,
    /// Requests that are served at once.
    pub slots: u32,
    /// The mean time of a request in its slot.
    pub service: Duration,
    /// The distribution of that time.
    pub shape: ServiceShape,
}

/// Distribution of the time of a request in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceShape {
    /// All requests take the mean.
    Fixed,
    /// Exponential.
    Exponential,
}

// === impl ReturnCase ===

impl Default for ReturnCase {
    fn default() -> Self {
        Self {
            clients: 6,
            requests_each: 20,
            pause: Duration::ZERO,
            slots: 3,
            service: Duration::from_millis(200),
            shape: ServiceShape::Fixed,
        }
    }
}

impl ReturnCase {
    /// Creates a case of clients with so many requests each and a pause between them, on slots with this service.
    #[must_use]
    pub fn new(
        (clients, requests_each, pause): (u32, u32, Duration),
        slots: u32,
        service: Duration,
        shape: ServiceShape,
    ) -> Self {
        Self { clients, requests_each, pause, slots, service, shape }
    }

    /// Requests of all clients.
    #[must_use]
    pub fn requests(&self) -> u64 {
        u64::from(self.clients) * u64::from(self.requests_each)
    }
}

impl fmt::Display for ReturnCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, requests_each, pause, slots, service, shape } = self;
        let shape = match shape {
            ServiceShape::Fixed => "fixed",
            ServiceShape::Exponential => "exponential",
        };
        let ms = service.as_millis();
        write!(f, "{clients} × {requests_each} on {slots}, {ms} ms {shape}")?;
        match pause.as_millis() {
            0 => Ok(()),
            pause_ms => write!(f, ", pauses of {pause_ms} ms"),
        }
    }
}
