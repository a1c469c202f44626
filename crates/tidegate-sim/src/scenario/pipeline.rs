use super::{FaultKind, Scenario};
use serde::{Deserialize, Serialize};
use tidegate_core::window::{Law, Stage};

/// The ingestion pipeline, and what is sent into it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineWorld {
    /// Records a second that the store takes: it is held to that, so that a drill knows what it can do. The other
    /// stages are as fast as they are; in the simulator four times as fast.
    pub store_per_s: f64,
    /// The offered rate at a load of 1, as a share of that.
    #[serde(default = "one")]
    pub share: f64,
    /// The law that sizes windows.
    #[serde(default = "cubic", with = "law_name")]
    pub law: Law,
    /// Senders at once.
    #[serde(default = "four")]
    pub senders: u16,
    /// Records in a batch.
    #[serde(default = "hundred")]
    pub batch_records: u32,
}

/// The speed of the other stages in the simulator, as a multiple of the store's.
pub const OTHERS_FASTER: f64 = 4.0;

// === impl Scenario ===

impl Scenario {
    /// Records a second that the slowest stage of the pipeline does at this moment; 0 while one is blocked, and
    /// without a pipeline.
    #[must_use]
    pub fn flows_per_s(&self, now_s: f64) -> f64 {
        let store_per_s = self.pipeline.as_ref().map_or(0.0, |world| world.store_per_s);
        let of = |stage: Stage| {
            let faster = if stage == Stage::Store { 1.0 } else { OTHERS_FASTER };
            self.slowness(stage, now_s).map_or(0.0, |slowness| store_per_s * faster / slowness)
        };
        Stage::ALL.map(of).into_iter().fold(f64::INFINITY, f64::min)
    }

    /// Returns the factor of a stage's times at this moment, by all its faults together; `None` while it is
    /// blocked.
    #[must_use]
    pub fn slowness(&self, stage: Stage, now_s: f64) -> Option<f64> {
        let on =
            self.faults.iter().filter(|fault| fault.stage == Some(stage) && fault.is_on(now_s));
        on.map(|fault| match fault.kind {
            FaultKind::Blocked => None,
            _ => Some(fault.factor.unwrap_or(1.0)),
        })
        .try_fold(1.0, |product, factor| Some(product * factor?))
    }
}

fn one() -> f64 {
    1.0
}

fn four() -> u16 {
    4
}

fn hundred() -> u32 {
    100
}

fn cubic() -> Law {
    Law::Cubic
}

/// Laws are written by their names.
mod law_name {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
    use tidegate_core::window::Law;

    pub(super) fn serialize<S: Serializer>(law: &Law, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(law)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Law, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
