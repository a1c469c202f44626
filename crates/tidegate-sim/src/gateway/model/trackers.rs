use super::settings::Settings;
use tidegate_core::admission::InFlightTracker;

/// The trackers of requests in flight. Permits borrow from them, so they are created before the simulation.
#[derive(Debug)]
pub struct Trackers {
    pub gateway: InFlightTracker,
    pub tenants: Vec<Option<InFlightTracker>>,
    pub upstreams: Vec<Option<InFlightTracker>>,
}

// === impl Trackers ===

impl Trackers {
    pub fn new(settings: &Settings) -> Self {
        let tracker = |limits| InFlightTracker::new(limits, settings.sharing);
        let of_upstream = |_| settings.of_upstream.map(tracker);
        Self {
            gateway: tracker(settings.limits),
            tenants: settings.of_tenant.iter().map(|limits| limits.map(tracker)).collect(),
            upstreams: (0..settings.upstreams.count).map(of_upstream).collect(),
        }
    }

    /// Everyone's, with a name.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &InFlightTracker)> {
        let tenants = self.tenants.iter().flatten().map(|tracker| ("a tenant's share", tracker));
        let upstreams =
            self.upstreams.iter().flatten().map(|tracker| ("an upstream's share", tracker));
        [("the gateway", &self.gateway)].into_iter().chain(tenants).chain(upstreams)
    }
}
