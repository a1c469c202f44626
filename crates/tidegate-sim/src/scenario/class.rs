use super::Service;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;

/// Requests of one kind.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// What it is called in expectations and reports.
    pub name: String,
    /// What it claims to be. Critical ones ask the gateway's control plane, which answers them itself: no
    /// client can claim that for a request to a worker.
    #[serde(default = "normal")]
    pub priority: MessagePriority,
    /// Whose requests they are, by a name of `[[gateway.tenant]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// How many there are at a load of 1, as a share of what the workers can do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// How many there are at a load of 1, a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
    /// Loads in some phases that differ from the phase's own, by the phase's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub loads: BTreeMap<String, f64>,
    /// What a request asks of a worker; for critical ones, how long the gateway is taken to work on them where
    /// it is simulated, besides what its processor has to do before.
    pub service: Service,
    /// Bytes of a request's body.
    #[serde(default)]
    pub body_bytes: u32,
    /// An answer that comes later is of no use, in milliseconds from when an attempt was due. The client waits
    /// no longer for that attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<f64>,
    /// What its clients do when they are refused. Without it they go away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPlan>,
}

/// How clients come back.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RetryPlan {
    /// How often at most.
    pub times: u32,
    /// When.
    pub wait: RetryWait,
    /// The first wait where they choose it themselves, in milliseconds; each further one is twice as long.
    #[serde(default = "hundred")]
    pub base_ms: f64,
    /// Whether they also come back after a failure or a deadline, not only after a refusal.
    #[serde(default)]
    pub failures: bool,
}

/// When clients come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryWait {
    /// When they were told to, and by backoff where they were not.
    Told,
    /// After a time that doubles, drawn evenly between nothing and that.
    Backoff,
    /// At once.
    AtOnce,
}

// === impl RetryPlan ===

impl RetryPlan {
    /// How long a client waits before it comes back for the `attempt`-th time (1 is the first), with a number
    /// drawn evenly from 0 … 1; `None` when it gives up.
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
