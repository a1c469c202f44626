use super::{Reservation, Upstream, UpstreamQueue, UpstreamStats};
use crate::config::Config;
use std::sync::Arc;
use tidegate::outbox::QueueConfigError;
use tidegate::routing::{Ask, MonitorConfig, PushRouter, RouteError, UpstreamId, WorkerMonitor};

/// The upstreams that one request was sent to or refused by.
pub type TriedUpstreams = tidegate::routing::TriedUpstreams<UpstreamId>;

/// All upstreams, and the choice among them.
#[derive(Debug)]
pub struct Fleet {
    upstreams: Vec<Arc<Upstream>>,
    router: PushRouter,
}

/// The upstreams can't be as configured.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A host can't stand in a URL.
    #[error("an upstream's host is not valid: {0}")]
    Host(#[from] http::uri::InvalidUri),
    /// The sizes of the outbox contradict each other.
    #[error("the outbox can't be so: {0}")]
    Outbox(#[from] QueueConfigError),
}

// === impl Fleet ===

impl Fleet {
    /// The fleet of the configured upstreams, all taken to be up and idle until shown otherwise.
    ///
    /// # Errors
    ///
    /// When a target's host can't stand in a URL, or the outbox can't be as configured.
    pub fn new(config: &Config) -> Result<Self, FleetError> {
        let routing = &config.routing;
        let monitor = Arc::new(WorkerMonitor::new(MonitorConfig {
            thresholds: routing.thresholds,
            by_model: routing.models.clone(),
            report_ttl: routing.report_ttl,
            on_silence: routing.on_silence,
            shares: routing.shares,
            retry: config.admission.retry,
            ..MonitorConfig::default()
        }));
        let upstreams = config
            .upstreams
            .iter()
            .enumerate()
            .map(|(index, target)| {
                let count = config.upstreams.len();
                let queue = UpstreamQueue::new(&config.outbox, &config.admission, count)?;
                Ok(Arc::new(Upstream::new(index, target, &monitor, queue)?))
            })
            .collect::<Result<_, FleetError>>()?;
        Ok(Self { upstreams, router: PushRouter::new(monitor, routing.pick) })
    }

    /// Every upstream, in the order of the configuration.
    #[must_use]
    pub fn all(&self) -> &[Arc<Upstream>] {
        &self.upstreams
    }

    /// Returns true if any upstream is up.
    #[must_use]
    pub fn any_up(&self) -> bool {
        self.monitor().upstreams().iter().any(|upstream| upstream.up)
    }

    /// Load of the upstreams.
    #[must_use]
    pub fn monitor(&self) -> &Arc<WorkerMonitor> {
        self.router.monitor()
    }

    /// The router.
    #[must_use]
    pub fn router(&self) -> &PushRouter {
        &self.router
    }

    /// Reserves an upstream that has room for a request.
    ///
    /// # Errors
    ///
    /// When all are busy, none is there, or all were tried.
    pub fn reserve(&self, ask: &Ask<'_>) -> Result<Reservation, RouteError> {
        let assignment = self.router.route(ask)?;
        Ok(Reservation::new(&self.upstreams[assignment.upstream().id().0], assignment))
    }

    /// Reserves an upstream beyond its thresholds, for a dry run.
    pub fn reserve_beyond_thresholds(&self, ask: &Ask<'_>) -> Option<Reservation> {
        let assignment = self.router.route_anyway(ask)?;
        Some(Reservation::new(&self.upstreams[assignment.upstream().id().0], assignment))
    }

    /// A snapshot of every upstream.
    #[must_use]
    pub fn stats(&self) -> Vec<UpstreamStats> {
        let loads = self.monitor().upstreams();
        let pairs = self.upstreams.iter().zip(loads);
        pairs.map(|(upstream, load)| upstream.stats(load)).collect()
    }
}
