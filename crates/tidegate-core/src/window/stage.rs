use serde::Serialize;
use std::fmt;

/// A stage of the ingestion pipeline. Each has a window over what waits at its entrance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Takes bytes from connections, in turn.
    Accept,
    /// Puts frames and lines together that the network cut.
    Reassemble,
    /// Makes records of them.
    Parse,
    /// Prices them.
    Evaluate,
    /// Makes them durable.
    Store,
}

// === impl Stage ===

impl Stage {
    /// How many stages there are.
    pub const COUNT: usize = 5;

    /// Every stage, in the order in which data passes them.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Accept, Self::Reassemble, Self::Parse, Self::Evaluate, Self::Store];

    /// The name used in labels, answers and logs.
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

    /// This stage's place in an array.
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
