use super::{Reservation, Upstream, UpstreamShare, UpstreamStats};
use crate::config::{Config, QueueConfig};
use std::sync::Arc;
use std::time::Duration;
use tidegate::queue::{PoolQueueConfig, WaitTarget};
use tidegate::routing::{
    AcquireError, Ask, MonitorConfig, PushRouter, RouteError, UpstreamId, WorkerMonitor,
};

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
}

// === impl Fleet ===

impl Fleet {
    /// The fleet of the configured upstreams, all taken to be up and idle until shown otherwise.
    ///
    /// # Errors
    ///
    /// When a target's host can't stand in a URL.
    pub fn new(config: &Config) -> Result<Self, FleetError> {
        let routing = &config.routing;
        let monitor = Arc::new(WorkerMonitor::new(MonitorConfig {
            thresholds: routing.thresholds,
            by_model: routing.models.clone(),
            report_ttl: routing.report_ttl,
            on_silence: routing.on_silence,
            queue: queue(config),
            retry: config.admission.retry,
            ..MonitorConfig::default()
        }));
        let upstreams = config
            .upstreams
            .iter()
            .enumerate()
            .map(|(index, target)| {
                let count = config.upstreams.len();
                let share = UpstreamShare::new(routing, &config.admission, count);
                let goal = target.limit_preset.unwrap_or(routing.limit_preset);
                let limit = target.limit.unwrap_or(routing.limit).of_upstream(goal);
                Ok(Arc::new(Upstream::new(index, target, &monitor, limit, share)?))
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

    /// Reserves an upstream that has room for a request, and waits for one for as long as this.
    ///
    /// # Errors
    ///
    /// When all are busy and it may not wait or waited in vain, none is there, or all were tried.
    ///
    /// # Cancel safety
    ///
    /// A request that is dropped while it waits leaves the queue at once.
    pub async fn acquire(
        &self,
        ask: &Ask<'_>,
        wait_max: Duration,
    ) -> Result<Reservation, AcquireError> {
        let assignment = self.router.acquire(ask, wait_max).await?;
        Ok(Reservation::new(&self.upstreams[assignment.upstream().id().0], assignment))
    }

    /// Reserves an upstream that has room for a request, without a wait.
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

/// The queue of each model. Requests that wait hold permits of the gateway: before several upstreams, those of one
/// model may hold at most the part of each limit that those at one upstream may.
fn queue(config: &Config) -> PoolQueueConfig {
    let QueueConfig { size, overflow_size, wait_max, starvation_guard } = config.queue;
    let limits = &config.admission.limits;
    let of_limits = [limits.global_limit, limits.high, limits.normal, limits.low];
    let least = of_limits.into_iter().filter(|limit| *limit > 0).min();
    let most = match (config.upstreams.len() > 1, least) {
        (true, Some(least)) => ((f64::from(least) * config.routing.upstream_share) as usize).max(1),
        _ => usize::MAX,
    };
    let default = WaitTarget::default();
    let size = size.min(most);
    PoolQueueConfig {
        size,
        overflow_size: overflow_size.min(most - size),
        starvation_guard,
        target: WaitTarget { min: default.min.min(wait_max), max: wait_max, ..default },
        ..PoolQueueConfig::default()
    }
}
