use serde::{Deserialize, Serialize};
use tidegate_core::window::Law;

/// The ingestion pipeline, and what is sent into it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PipelineWorld {
    /// Records a second that the store takes: it is held to that, so that a drill knows what it can do. The other
    /// stages are as fast as they are; in the simulator four times as fast.
    pub store_per_s: f64,
    /// What is offered at a load of 1, as a share of that.
    #[serde(default = "one")]
    pub share: f64,
    /// How windows are sized.
    #[serde(default = "cubic", with = "law_name")]
    pub law: Law,
    /// Senders at once.
    #[serde(default = "four")]
    pub senders: u16,
    /// Records in a batch.
    #[serde(default = "hundred")]
    pub batch_records: u32,
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
