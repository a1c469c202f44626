use std::fmt;

/// Something that makes tariffs unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TariffMistake {
    /// What it is about.
    pub place: Place,
    /// What is wrong.
    pub wrong: String,
    /// What was expected instead.
    pub expected: String,
    /// What to do about it.
    pub fix: String,
}

/// A place in a list of tariffs. All numbers count from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which tariff; `None` is the fallback or the whole.
    pub tariff: Option<usize>,
    /// Which of its windows.
    pub window: Option<usize>,
    /// Which tier of its base price or of that window.
    pub tier: Option<usize>,
    /// The key's name; empty when it is about the whole of it.
    pub key: &'static str,
}

// === impl TariffMistake ===

impl TariffMistake {
    /// A mistake.
    pub fn new(
        place: Place,
        wrong: impl Into<String>,
        expected: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { place, wrong: wrong.into(), expected: expected.into(), fix: fix.into() }
    }
}

impl fmt::Display for TariffMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wrong, expected, fix, .. } = self;
        write!(f, "{wrong}; expected {expected}; {fix}")
    }
}

impl std::error::Error for TariffMistake {}

// === impl Place ===

impl Place {
    /// A tariff.
    #[must_use]
    pub const fn tariff(number: usize) -> Self {
        Self { tariff: Some(number), window: None, tier: None, key: "" }
    }

    /// A window of it.
    #[must_use]
    pub const fn window(self, number: usize) -> Self {
        Self { window: Some(number), ..self }
    }

    /// A tier of it.
    #[must_use]
    pub const fn tier(self, number: usize) -> Self {
        Self { tier: Some(number), ..self }
    }

    /// A key of it.
    #[must_use]
    pub const fn key(self, key: &'static str) -> Self {
        Self { key, ..self }
    }
}
