use serde::Serialize;
use std::fmt;

/// Stage of the ingestion pipeline. Each has a window over the items at its entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Reads bytes from connections, in turn.
    Accept,
    /// Reassembles frames and lines that the network split.
    Reassemble,
    /// Parses records.
    Parse,
    /// Prices records.
    Evaluate,
    /// Makes records durable.
    Store,
}

// === impl Stage ===

impl Stage {
    /// Number of stages.
    pub const COUNT: usize = 5;

    /// Every stage, in the order of the data flow.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Accept, Self::Reassemble, Self::Parse, Self::Evaluate, Self::Store];

    /// Name in labels, responses and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Reassemble => "reassemble",
            Self::Parse => "parse",
            Self::Evaluate => "evaluate",
            Self::Store => "store",
        }
    }

    /// Index into arrays over all stages.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
