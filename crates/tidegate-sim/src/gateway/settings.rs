use super::Flaw;
use crate::agenda::Time;
use crate::scenario::{Scenario, Tenant, Workers};
use std::time::Duration;
use tidegate_core::admission::{MessagePriority, PriorityLimits, RetryBounds, Role, Sharing};
use tidegate_core::outbox::QueueConfig;
use tidegate_core::routing::{BusyThresholds, Pick, Shares};

/// What a gateway does by default where a scenario does not say otherwise; the server's own defaults.
const WAIT_MAX: Duration = Duration::from_secs(5);
const WORKER_SHARE: f64 = 0.5;

/// A gateway's settings, with every default filled in.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) workers: Workers,
    pub(super) limits: PriorityLimits,
    pub(super) sharing: Sharing,
    pub(super) pick: Pick,
    pub(super) concurrency: usize,
    /// Requests in one worker's line.
    pub(super) queue: usize,
    pub(super) wait_max: Time,
    /// What the requests of one worker may hold of the limits, if that is not all.
    pub(super) of_worker: Option<PriorityLimits>,
    /// What the requests of each tenant may hold of the limits.
    pub(super) of_tenant: Vec<Option<PriorityLimits>>,
    pub(super) thresholds: BusyThresholds,
    pub(super) retry: RetryBounds,
    /// What the gateway's own processor takes for a request and for a refusal.
    pub(super) request_cost: Time,
    pub(super) refusal_cost: Time,
}

// === impl Settings ===

impl Settings {
    pub(super) fn of(scenario: &Scenario, workers: &Workers) -> Self {
        let gateway = scenario.gateway();
        let limits = gateway.limits.map_or_else(|| Role::Gate.limits(), Into::into);
        let worker_share = gateway.worker_share.unwrap_or(WORKER_SHARE);
        let shares = workers.count > 1 && worker_share < 1.0;
        let of_tenant = |tenant: &Tenant| tenant.share.map(|share| limits.part(share));
        let default_queue = Role::Gate.outgoing_queue_size() + QueueConfig::default().overflow_size;
        let wait_max_ms = gateway.wait_max_ms.map(|ms| Duration::from_secs_f64(ms / 1e3));
        Self {
            workers: *workers,
            limits,
            sharing: gateway.sharing.unwrap_or_default(),
            pick: gateway.pick.unwrap_or_default(),
            concurrency: gateway.concurrency.unwrap_or(0),
            queue: gateway.queue.unwrap_or(default_queue),
            wait_max: wait_max_ms.unwrap_or(WAIT_MAX).as_nanos() as Time,
            of_worker: shares.then(|| limits.part(worker_share)),
            of_tenant: gateway.tenants.iter().map(of_tenant).collect(),
            thresholds: BusyThresholds {
                active_decode_blocks: gateway.active_decode_blocks,
                active_prefill_tokens: None,
                active_requests: gateway.active_requests,
            },
            retry: RetryBounds::default(),
            request_cost: (gateway.request_us.unwrap_or(0.0) * 1e3) as Time,
            refusal_cost: (gateway.refusal_us.unwrap_or(0.0) * 1e3) as Time,
        }
    }

    /// The queue of one worker's line.
    pub(super) fn line(&self, plant: Option<Flaw>) -> QueueConfig {
        let size = if plant == Some(Flaw::UnboundedLine) { 1_000_000 } else { self.queue };
        QueueConfig { primary_size: size, overflow_size: 0, ..QueueConfig::default() }
    }

    /// Thresholds by priority.
    pub(super) fn thresholds_of(&self, plant: Option<Flaw>) -> [BusyThresholds; 4] {
        MessagePriority::ALL.map(|priority| {
            let of = match (plant, priority) {
                (Some(Flaw::UpsideDown), MessagePriority::High) => MessagePriority::Low,
                (Some(Flaw::UpsideDown), MessagePriority::Low) => MessagePriority::High,
                _ => priority,
            };
            self.thresholds.for_priority(of, Shares::default())
        })
    }
}
