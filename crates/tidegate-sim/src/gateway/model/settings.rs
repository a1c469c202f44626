use crate::agenda::Time;
use crate::scenario::{Scenario, Tenant, UpstreamLimit, Upstreams};
use std::time::Duration;
use tidegate_core::admission::{PriorityLimits, RetryBounds, Role, Sharing};
use tidegate_core::limit::LimitConfig;
use tidegate_core::queue::PoolQueueConfig;
use tidegate_core::routing::{self, BusyThresholds, Pick};

/// The server's defaults for settings that a scenario leaves out.
const WAIT_MAX: Duration = Duration::from_secs(5);
const UPSTREAM_SHARE: f64 = 0.5;

/// A gateway's settings, with every default filled in.
#[derive(Clone, Debug)]
pub struct Settings {
    pub upstreams: Upstreams,
    pub limits: PriorityLimits,
    pub sharing: Sharing,
    pub pick: Pick,
    /// The most requests outstanding at one upstream.
    pub limit: routing::UpstreamLimit,
    /// The bounds of the pool's queue.
    pub queue: PoolQueueConfig,
    pub wait_max: Time,
    /// The limits for requests to one upstream, if that is not all.
    pub of_upstream: Option<PriorityLimits>,
    /// The limits for requests of each tenant.
    pub of_tenant: Vec<Option<PriorityLimits>>,
    pub thresholds: BusyThresholds,
    pub retry: RetryBounds,
    /// True if every refused client gets a turn of its own, false if all are told the same.
    pub turns: bool,
    /// The processor time of the gateway for a request and for a refusal.
    pub request_cost: Time,
    pub refusal_cost: Time,
}

// === impl Settings ===

impl Settings {
    pub fn of(scenario: &Scenario, upstreams: &Upstreams) -> Self {
        let gateway = scenario.gateway();
        let limits = gateway.limits.map_or_else(|| Role::Gate.limits(), Into::into);
        let upstream_share = gateway.upstream_share.unwrap_or(UPSTREAM_SHARE);
        let shares = upstreams.count > 1 && upstream_share < 1.0;
        let of_tenant = |tenant: &Tenant| tenant.share.map(|share| limits.part(share));
        let default_queue = PoolQueueConfig::default();
        let of_size = |size| PoolQueueConfig { size, overflow_size: 0, ..default_queue };
        let wait_max_ms = gateway.wait_max_ms.map(|ms| Duration::from_secs_f64(ms / 1e3));
        Self {
            upstreams: *upstreams,
            limits,
            sharing: gateway.sharing.unwrap_or_default(),
            pick: gateway.pick.unwrap_or_default(),
            limit: match gateway.limit.unwrap_or_default() {
                UpstreamLimit::Off => routing::UpstreamLimit::Off,
                UpstreamLimit::Fixed(limit) => routing::UpstreamLimit::Fixed(limit),
                UpstreamLimit::Auto => routing::UpstreamLimit::Auto(LimitConfig::default()),
            },
            queue: gateway.queue.map_or(default_queue, of_size),
            wait_max: wait_max_ms.unwrap_or(WAIT_MAX).as_nanos() as Time,
            of_upstream: shares.then(|| limits.part(upstream_share)),
            of_tenant: gateway.tenants.iter().map(of_tenant).collect(),
            thresholds: BusyThresholds {
                active_decode_blocks: gateway.active_decode_blocks,
                active_prefill_tokens: None,
                active_requests: gateway.active_requests,
            },
            retry: RetryBounds::default(),
            turns: true,
            request_cost: (gateway.request_us.unwrap_or(0.0) * 1e3) as Time,
            refusal_cost: (gateway.refusal_us.unwrap_or(0.0) * 1e3) as Time,
        }
    }
}
