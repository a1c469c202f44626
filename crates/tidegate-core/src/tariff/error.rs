use std::fmt;

/// Error of a tariff specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TariffError {
    /// Location of the error.
    pub location: Location,
    /// Description of the error.
    pub wrong: String,
    /// Expected value.
    pub expected: String,
    /// Suggested correction.
    pub fix: String,
}

/// Location in a list of tariffs. All numbers count from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// Number of the tariff; `None` for the fallback or the whole list.
    pub tariff: Option<usize>,
    /// Number of the window.
    pub window: Option<usize>,
    /// Number of the tier, of the base price or of that window.
    pub tier: Option<usize>,
    /// Name of the key; empty for the whole.
    pub key: &'static str,
}

// === impl TariffError ===

impl TariffError {
    /// Creates an error.
    pub fn new(
        location: Location,
        wrong: impl Into<String>,
        expected: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { location, wrong: wrong.into(), expected: expected.into(), fix: fix.into() }
    }
}

impl fmt::Display for TariffError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wrong, expected, fix, .. } = self;
        write!(f, "{wrong}; expected {expected}; {fix}")
    }
}

impl std::error::Error for TariffError {}

// === impl Location ===

impl Location {
    /// Location of a tariff.
    #[must_use]
    pub const fn tariff(number: usize) -> Self {
        Self { tariff: Some(number), window: None, tier: None, key: "" }
    }

    /// Location of a window in it.
    #[must_use]
    pub const fn window(self, number: usize) -> Self {
        Self { window: Some(number), ..self }
    }

    /// Location of a tier in it.
    #[must_use]
    pub const fn tier(self, number: usize) -> Self {
        Self { tier: Some(number), ..self }
    }

    /// Location of a key in it.
    #[must_use]
    pub const fn key(self, key: &'static str) -> Self {
        Self { key, ..self }
    }
}
