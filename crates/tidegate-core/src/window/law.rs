use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Control law that sizes a window from measurements.
///
/// ```
/// use tidegate_core::window::Law;
///
/// assert_eq!("seed".parse(), Ok(Law::Seed));
/// assert_eq!(Law::default().name(), "cubic");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Law {
    /// Reserves more than it grants, grows along CUBIC's curve towards the window of Little's law, detects a stall
    /// after one second, and shares the budget with guaranteed floors.
    #[default]
    Cubic,
    /// Plain AIMD, for comparison: 64 slots more per period, or × 0.7 if a window is over 0.85 full or p99 is over
    /// twice its running mean. All reserved slots are granted.
    Seed,
}

/// Error for an unknown name of a [`Law`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLaw {
    /// Name that was given.
    pub name: String,
}

// === impl Law ===

impl Law {
    /// Every law, the default first.
    pub const ALL: [Self; 2] = [Self::Cubic, Self::Seed];

    /// Name in settings, labels and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Seed => "seed",
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Law {
    type Err = UnknownLaw;

    fn from_str(name: &str) -> Result<Self, UnknownLaw> {
        let known = Self::ALL.into_iter().find(|law| law.name() == name);
        known.ok_or_else(|| UnknownLaw { name: name.to_owned() })
    }
}

// === impl UnknownLaw ===

impl fmt::Display for UnknownLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown law {:?}: use cubic or seed", self.name)
    }
}

impl std::error::Error for UnknownLaw {}
