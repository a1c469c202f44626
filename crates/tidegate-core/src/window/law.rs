use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// How a window is sized from what was measured.
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
    /// Reserves more than it grants, grows along CUBIC's curve towards what Little's law asks for, sees a stall
    /// after a second, and shares the budget with floors kept.
    #[default]
    Cubic,
    /// Plain AIMD, to compare with: 64 slots more a period, or 0.7 × when a window is over 0.85 full or p99 is
    /// over twice its running mean; what is reserved is granted.
    Seed,
}

/// A name that no [`Law`] has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLaw {
    /// What was given.
    pub name: String,
}

// === impl Law ===

impl Law {
    /// Every law, the default first.
    pub const ALL: [Self; 2] = [Self::Cubic, Self::Seed];

    /// The name used in settings, labels and tables.
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
        write!(f, "no law is called {:?}: there are cubic and seed", self.name)
    }
}

impl std::error::Error for UnknownLaw {}
