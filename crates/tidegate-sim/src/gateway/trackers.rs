use super::settings::Settings;
use tidegate_core::admission::InFlightTracker;

/// Everything that counts requests in flight. Permits borrow from it, so it is made before the simulation.
#[derive(Debug)]
pub(super) struct Trackers {
    pub(super) gateway: InFlightTracker,
    pub(super) tenants: Vec<Option<InFlightTracker>>,
    pub(super) workers: Vec<Option<InFlightTracker>>,
}

// === impl Trackers ===

impl Trackers {
    pub(super) fn new(settings: &Settings) -> Self {
        let tracker = |limits| InFlightTracker::new(limits, settings.sharing);
        let of_worker = |_| settings.of_worker.map(tracker);
        Self {
            gateway: tracker(settings.limits),
            tenants: settings.of_tenant.iter().map(|limits| limits.map(tracker)).collect(),
            workers: (0..settings.workers.count).map(of_worker).collect(),
        }
    }

    /// Everyone's, with a name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &InFlightTracker)> {
        let tenants = self.tenants.iter().flatten().map(|tracker| ("a tenant's share", tracker));
        let workers = self.workers.iter().flatten().map(|tracker| ("a worker's share", tracker));
        [("the gateway", &self.gateway)].into_iter().chain(tenants).chain(workers)
    }
}
