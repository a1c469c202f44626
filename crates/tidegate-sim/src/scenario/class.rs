use super::Service;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;

/// A class of requests.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// The name in expectations and reports.
    pub name: String,
    /// The priority that requests claim. Critical requests go to the gateway's control plane, which answers them
    /// itself: no client can claim Critical for a request to an upstream.
    #[serde(default = "normal")]
    pub priority: MessagePriority,
    /// The tenant, by a name of `[[gateway.tenant]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The rate at a load of 1, as a share of the upstreams' capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The rate at a load of 1, in requests per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
    /// Loads in some phases that differ from the phase's own, by the phase's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loads: BTreeMap<String, f64>,
    /// The work of a request at an upstream; for Critical requests, the service time in the simulated gateway, in
    /// addition to its processor time.
    pub service: Service,
    /// Bytes of a request's body.
    #[serde(default)]
    pub body_bytes: u32,
    /// An answer that comes later is of no use, in milliseconds from when an attempt was due. The client waits
    /// no longer for that attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<f64>,
    /// The retries of clients after a refusal. Without it they give up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPlan>,
}

/// The retries of clients.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPlan {
    /// The most retries.
    pub times: u32,
    /// The time.
    pub wait: RetryWait,
    /// The first wait where they choose it themselves, in milliseconds; each further one is twice as long.
    #[serde(default = "hundred")]
    pub base_ms: f64,
    /// True if they also retry after a failure or a deadline, not only after a refusal.
    #[serde(default)]
    pub failures: bool,
}

/// The wait before a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryWait {
    /// The wait of the retry advice, or backoff without advice.
    Told,
    /// Exponential backoff with full jitter.
    Backoff,
    /// At once.
    AtOnce,
}

// === impl RetryPlan ===

impl RetryPlan {
    /// Returns the wait before the `attempt`-th retry (1 is the first), with a uniform number from 0 … 1; `None`
    /// when the client gives up.
    #[must_use]
    pub fn wait(&self, attempt: u32, told: Option<Duration>, uniform: f64) -> Option<Duration> {
        if attempt > self.times {
            return None;
        }
        let doubled = self.base_ms * f64::from(1_u32 << attempt.saturating_sub(1).min(10));
        let backoff = Duration::from_micros((doubled * uniform * 1e3) as u64);
        Some(match self.wait {
            RetryWait::Told => told.unwrap_or(backoff),
            RetryWait::Backoff => backoff,
            RetryWait::AtOnce => Duration::ZERO,
        })
    }
}

fn normal() -> MessagePriority {
    MessagePriority::Normal
}

fn hundred() -> f64 {
    100.0
}
