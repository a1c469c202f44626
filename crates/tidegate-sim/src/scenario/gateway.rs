use super::Class;
use serde::{Deserialize, Serialize};
use tidegate_core::admission::{MessagePriority, PriorityLimits, Sharing};
use tidegate_core::routing::Pick;

/// A gateway's settings. What is not set is as a gateway has it by default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayWorld {
    /// Requests at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The use of limits beyond a priority's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// The choice among upstreams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pick: Option<Pick>,
    /// The concurrency limit of each upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<UpstreamLimit>,
    /// The most requests that wait for a slot at any upstream; 0 refuses a request that finds none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<usize>,
    /// The longest wait in the queue, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_max_ms: Option<f64>,
    /// The share of the admission limits that requests to one upstream may hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_share: Option<f64>,
    /// An upstream with so many requests is busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_requests: Option<u64>,
    /// An upstream with so much of its KV cache in use is busy, 0 … 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_decode_blocks: Option<f64>,
    /// The processor time of the gateway for an admitted request, in microseconds. Control requests wait behind
    /// it. Only simulated; 0 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_us: Option<f64>,
    /// The processor time of the gateway for a refusal, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal_us: Option<f64>,
    /// Clients that are known by a token.
    #[serde(default, rename = "tenant", skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<Tenant>,
}

/// Requests at once, as `[admission]` of the configuration has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// All together.
    pub global: u16,
    /// High alone; 0: only the global limit binds.
    pub high: u16,
    /// Normal alone.
    pub normal: u16,
    /// Low alone.
    pub low: u16,
    /// The most Critical requests that count toward the global limit; a tenth of it by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_reserve: Option<u16>,
}

/// The concurrency limit of an upstream: the most requests that are outstanding there. A number, `"auto"` or
/// `"off"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", expecting = "a number of requests, \"auto\" or \"off\"")]
pub enum UpstreamLimit {
    /// As many requests as come.
    #[default]
    Off,
    /// Found from the requests themselves.
    Auto,
    /// This many requests, at least 1.
    #[serde(untagged)]
    Fixed(u32),
}

/// A client with a token.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// The most urgent that it may claim to be.
    #[serde(default = "high")]
    pub max_priority: MessagePriority,
    /// The share of the admission limits that its requests may hold; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// The upstreams behind the gateway, each alike.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Upstreams {
    /// Number of upstreams.
    pub count: u16,
    /// Requests that one executes at once.
    pub slots: u32,
    /// Requests in its own queue; further ones are refused.
    pub queue: u32,
    /// Blocks of KV cache.
    #[serde(default = "kv_blocks")]
    pub kv_blocks: u32,
    /// Requests at it, running and queued, beyond which it works more slowly: by the square of the excess.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thrash_above: Option<u32>,
    /// True if it reports its load.
    #[serde(default = "reports", skip_serializing_if = "is_true")]
    pub reports: bool,
}

fn reports() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

// === impl Limits ===

impl From<Limits> for PriorityLimits {
    fn from(limits: Limits) -> Self {
        let Limits { global, high, normal, low, critical_reserve } = limits;
        let by_default = Self::new(global, high, normal, low);
        match critical_reserve {
            Some(critical_reserve) => Self { critical_reserve, ..by_default },
            None => by_default,
        }
    }
}

// === impl Upstreams ===

impl Upstreams {
    /// Requests a second that all of them can do, for this mix of classes at a load of 1. Critical ones don't
    /// come to upstreams.
    ///
    /// By `share` a class has a share of the capacity, and by `per_s` a rate: with both in one scenario the rates
    /// count as what they are of a capacity for the shares alone.
    #[must_use]
    pub fn capacity_per_s(&self, classes: &[Class]) -> f64 {
        let to_upstreams = |class: &&Class| class.priority != MessagePriority::Critical;
        let classes: Vec<_> = classes.iter().filter(to_upstreams).collect();
        let all = f64::from(self.count);
        let per_s = |mean_s: f64, block_s: f64| {
            let by_slots = f64::from(self.slots) / mean_s;
            let by_blocks =
                if block_s > 0.0 { f64::from(self.kv_blocks) / block_s } else { by_slots };
            all * by_slots.min(by_blocks)
        };
        let mixed = |weight: &dyn Fn(&Class) -> f64| {
            let total: f64 = classes.iter().map(|class| weight(class)).sum();
            let mean = |of: &dyn Fn(&Class) -> f64| -> f64 {
                classes.iter().map(|class| weight(class) * of(class)).sum::<f64>() / total
            };
            (total > 0.0).then(|| {
                per_s(
                    mean(&|class| class.service.mean_s()),
                    mean(&|class| class.service.mean_block_s()),
                )
            })
        };
        let of_shares = mixed(&|class| class.share.unwrap_or(0.0));
        let Some(of_shares) = of_shares else {
            return mixed(&|class| class.per_s.unwrap_or(0.0)).unwrap_or(0.0);
        };
        let weight =
            |class: &Class| class.share.unwrap_or(0.0) + class.per_s.unwrap_or(0.0) / of_shares;
        mixed(&weight).unwrap_or(of_shares)
    }
}

fn high() -> MessagePriority {
    MessagePriority::High
}

fn kv_blocks() -> u32 {
    65_536
}
