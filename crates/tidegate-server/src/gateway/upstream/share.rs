use crate::config::{AdmissionConfig, RoutingConfig};
use crate::http::RejectionCause;
use std::sync::Arc;
use tidegate::{InFlightTracker, MessagePriority, OwnedPermit};

/// The part of the admission limits that the requests at one upstream may hold, so that one that hangs does not
/// take the whole gateway.
#[derive(Debug)]
pub struct UpstreamShare {
    /// `None` for all of them.
    tracker: Option<Arc<InFlightTracker>>,
}

// === impl UpstreamShare ===

impl UpstreamShare {
    /// The share of one of `upstreams` behind a gateway with these limits.
    #[must_use]
    pub fn new(routing: &RoutingConfig, admission: &AdmissionConfig, upstreams: usize) -> Self {
        let share = routing.upstream_share;
        let tracker = (upstreams > 1 && share < 1.0).then(|| {
            let limits = admission.limits.part(share);
            Arc::new(InFlightTracker::new(limits, admission.sharing))
        });
        Self { tracker }
    }

    /// Takes a slot of the share, if there is a share.
    ///
    /// # Errors
    ///
    /// When the upstream's requests use the whole share.
    pub fn try_acquire(
        &self,
        priority: MessagePriority,
    ) -> Result<Option<OwnedPermit>, RejectionCause> {
        let Some(tracker) = &self.tracker else { return Ok(None) };
        let permit = tracker.try_acquire_owned(priority);
        permit.map(Some).map_err(|_| RejectionCause::UpstreamShare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use MessagePriority::Normal;

    #[test]
    fn one_of_several_upstreams_holds_no_more_than_its_share() {
        let limits =
            "[admission]\nglobal_limit = 20\nhigh_limit = 0\nnormal_limit = 10\nlow_limit = 0";
        let config = Config::from_toml(limits).unwrap();
        let share = |upstreams| UpstreamShare::new(&config.routing, &config.admission, upstreams);
        let shared = share(2);
        let mut held = Vec::new();
        while let Ok(Some(permit)) = shared.try_acquire(Normal) {
            held.push(permit);
        }
        assert_eq!(held.len(), 5);
        assert_eq!(shared.try_acquire(Normal).unwrap_err(), RejectionCause::UpstreamShare);
        held.pop();
        assert!(shared.try_acquire(Normal).is_ok());
        assert!(share(1).try_acquire(Normal).unwrap().is_none(), "alone it may hold everything");
    }
}
