use super::{Class, Fault, GatewayWorld, RetryPlan, Scenario, Service, Wave};
use tidegate_core::admission::MessagePriority;

impl Scenario {
    /// Its short form, or itself where it has none.
    #[must_use]
    pub fn shortened(&self) -> Self {
        match self.short {
            Some(short) => Self {
                settle_s: short.settle_s,
                short: None,
                classes: self.classes.iter().map(|class| class.slowed(short.slower)).collect(),
                gateway: self.gateway.as_ref().map(|gateway| gateway.slowed(short.slower)),
                ..self.lasting(short.duration_s)
            },
            None => self.clone(),
        }
    }

    /// The same in another time: phases, faults and waves are as long in relation to the whole as they were.
    #[must_use]
    pub fn lasting(&self, duration_s: f64) -> Self {
        let by = duration_s / self.duration_s;
        let fault = |fault: &Fault| Fault {
            from_s: fault.from_s * by,
            until_s: fault.until_s * by,
            ..fault.clone()
        };
        Self {
            duration_s,
            faults: self.faults.iter().map(fault).collect(),
            wave: self.wave.map(|wave| wave.scaled(by)),
            ..self.clone()
        }
    }
}

// === impl Class ===

impl Class {
    /// Returns the same scenario with work that takes `by` times as long, except for the gateway's own responses.
    fn slowed(&self, by: f64) -> Self {
        if self.priority == MessagePriority::Critical {
            return self.clone();
        }
        let retry = |plan: RetryPlan| RetryPlan { base_ms: plan.base_ms * by, ..plan };
        Self {
            per_s: self.per_s.map(|per_s| per_s / by),
            service: self.service.slowed(by),
            deadline_ms: self.deadline_ms.map(|ms| ms * by),
            retry: self.retry.map(retry),
            ..self.clone()
        }
    }
}

// === impl GatewayWorld ===

impl GatewayWorld {
    /// Returns the same scenario with upstreams that take `by` times as long: waits are as many times as long.
    fn slowed(&self, by: f64) -> Self {
        Self { wait_max_ms: self.wait_max_ms.map(|ms| ms * by), ..self.clone() }
    }
}

// === impl Service ===

impl Service {
    fn slowed(self, by: f64) -> Self {
        match self {
            Self::Fixed { ms } => Self::Fixed { ms: ms * by },
            Self::Exponential { ms } => Self::Exponential { ms: ms * by },
            Self::Bimodal { ms, slow_ms, slow_share } => {
                Self::Bimodal { ms: ms * by, slow_ms: slow_ms * by, slow_share }
            }
            Self::Kv {
                prompt_tokens,
                output_tokens,
                prefill_tokens_per_s,
                decode_ms_per_token,
                block_tokens,
            } => Self::Kv {
                prompt_tokens,
                output_tokens,
                prefill_tokens_per_s: prefill_tokens_per_s / by,
                decode_ms_per_token: decode_ms_per_token * by,
                block_tokens,
            },
        }
    }
}

// === impl Wave ===

impl Wave {
    fn scaled(self, by: f64) -> Self {
        match self {
            Self::Square { high, low, period_s } => {
                Self::Square { high, low, period_s: period_s * by }
            }
            Self::Sawtooth { peak, period_s } => Self::Sawtooth { peak, period_s: period_s * by },
            Self::Bursts { high, low, mean_s } => Self::Bursts { high, low, mean_s: mean_s * by },
        }
    }
}
