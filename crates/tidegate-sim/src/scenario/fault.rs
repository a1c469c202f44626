use serde::{Deserialize, Serialize};
use std::fmt;
use tidegate_core::window::Stage;

/// A temporary fault.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// The begin, in seconds from the start.
    pub from_s: f64,
    /// The end.
    pub until_s: f64,
    /// The upstreams, executors or managers, counted from 0. Without it all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<u16>,
    /// The stage of the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stage_name")]
    pub stage: Option<Stage>,
    /// `slow`: work takes so many times as long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// `fails`, `loss`: the share of requests or messages, 0 … 1. `capacity`: the share of slots that is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// `delay`: what messages take on top at most, drawn evenly, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added_ms: Option<f64>,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Upstreams, or a stage of the pipeline, take `factor` times as long.
    Slow,
    /// Upstreams refuse connections, and those that they had are cut. Executors and managers are killed, and
    /// started again when it is over.
    Dead,
    /// Upstreams answer a `share` of requests with an error, at once.
    Fails,
    /// Upstreams have a `share` of their slots left.
    Capacity,
    /// Upstreams take requests and nothing comes back; when it is over, what was asked is lost.
    Cut,
    /// A stage of the pipeline does nothing.
    Blocked,
    /// A `share` of the messages between managers and executors is lost. Only simulated.
    Loss,
    /// Messages between managers and executors take up to `added_ms` longer, so that some overtake others. Only
    /// simulated.
    Delay,
    /// Managers are killed, and started again when it is over.
    ManagerDead,
}

// === impl Fault ===

impl Fault {
    /// Returns `true` if it is active at this moment, in seconds from the start.
    #[must_use]
    pub fn is_on(&self, now_s: f64) -> bool {
        (self.from_s..self.until_s).contains(&now_s)
    }

    /// Returns `true` if it affects the upstream, executor or manager with this number.
    #[must_use]
    pub fn hits(&self, what: u16) -> bool {
        self.at.is_empty() || self.at.contains(&what)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if let Some(factor) = self.factor {
            write!(f, " ×{factor}")?;
        }
        if let Some(share) = self.share {
            write!(f, " {:.0} %", share * 100.0)?;
        }
        if let Some(added_ms) = self.added_ms {
            write!(f, " +{added_ms} ms")?;
        }
        if let Some(stage) = self.stage {
            write!(f, " at {stage}")?;
        }
        match self.at[..] {
            [] => Ok(()),
            [one] => write!(f, " at {one}"),
            [first, ..] => write!(f, " at {first} and {} more", self.at.len() - 1),
        }
    }
}

// === impl FaultKind ===

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Slow => "slow",
            Self::Dead => "dead",
            Self::Fails => "fails",
            Self::Capacity => "capacity",
            Self::Cut => "cut",
            Self::Blocked => "blocked",
            Self::Loss => "loss",
            Self::Delay => "delay",
            Self::ManagerDead => "manager_dead",
        })
    }
}

/// Stages are written by their names.
mod stage_name {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
    use tidegate_core::window::Stage;

    pub(super) fn serialize<S: Serializer>(
        stage: &Option<Stage>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match stage {
            Some(stage) => serializer.collect_str(stage),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Stage>, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Stage::ALL.into_iter().find(|stage| stage.to_string() == name);
        found.map(Some).ok_or_else(|| {
            let names = Stage::ALL.map(|stage| stage.to_string()).join(", ");
            D::Error::custom(format!("{name:?} is no stage: there are {names}"))
        })
    }
}
