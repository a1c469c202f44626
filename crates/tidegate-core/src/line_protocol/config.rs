use crate::frame::NAME_BYTES_MAX;
use std::fmt;
use std::sync::Arc;

/// Configuration of the line parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineConfig {
    /// Tag whose value is the tenant. `tenant` by default.
    pub tenant_tag: String,
    /// Tenant of lines without that tag. `unassigned` by default.
    pub tenant_default: Arc<str>,
    /// Unit of timestamps. Nanoseconds by default.
    pub precision: Precision,
}

/// Unit of timestamps since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Nanoseconds, the protocol's default.
    #[default]
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

/// Error of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineConfigError {
    /// Name of the invalid field: empty, longer than 128 bytes, or with an invalid character.
    pub name: &'static str,
}

// === impl LineConfig ===

impl LineConfig {
    /// Checks the configuration.
    ///
    /// # Errors
    ///
    /// The field that is invalid.
    pub fn validate(&self) -> Result<(), LineConfigError> {
        let usable = |text: &str| {
            (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control)
        };
        if !usable(&self.tenant_tag) || self.tenant_tag.contains(['\\', ',', '=', ' ']) {
            return Err(LineConfigError { name: "tenant_tag" });
        }
        if !usable(&self.tenant_default) {
            return Err(LineConfigError { name: "tenant_default" });
        }
        Ok(())
    }
}

impl Default for LineConfig {
    fn default() -> Self {
        Self {
            tenant_tag: "tenant".to_owned(),
            tenant_default: Arc::from("unassigned"),
            precision: Precision::Ns,
        }
    }
}

// === impl Precision ===

impl Precision {
    /// Every precision, the finest first.
    pub const ALL: [Self; 4] = [Self::Ns, Self::Us, Self::Ms, Self::S];

    /// Name in a configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
        }
    }

    /// Precision of a name in a configuration.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|precision| precision.name() == name)
    }

    /// Nanoseconds of one unit.
    #[must_use]
    pub const fn unit_ns(self) -> i64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
            Self::S => 1_000_000_000,
        }
    }
}

// === impl LineConfigError ===

impl fmt::Display for LineConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected 1 to 128 bytes without a control character", self.name)?;
        match self.name {
            "tenant_tag" => f.write_str(", comma, space, equals sign or backslash"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for LineConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_works_and_what_does_not_is_named() {
        assert_eq!(LineConfig::default().validate(), Ok(()));
        for wrong in ["", "two words", "a=b", "a,b", "a\\", "a\n", &"n".repeat(129)] {
            let config = LineConfig { tenant_tag: wrong.to_owned(), ..LineConfig::default() };
            assert_eq!(config.validate().unwrap_err().name, "tenant_tag", "{wrong}");
        }
        for wrong in ["", "a\0", &"n".repeat(129)] {
            let config = LineConfig { tenant_default: wrong.into(), ..LineConfig::default() };
            assert_eq!(config.validate().unwrap_err().name, "tenant_default", "{wrong}");
        }
    }

    #[test]
    fn a_precision_survives_its_name() {
        for precision in Precision::ALL {
            assert_eq!(Precision::from_name(precision.name()), Some(precision));
        }
        assert_eq!(Precision::from_name("m"), None);
    }
}
