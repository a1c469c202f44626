use std::fmt;
use std::time::Duration;

/// Error of a [`WindowConfig`](super::WindowConfig).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowConfigError {
    /// An integer is out of range.
    Whole {
        /// Name of the field.
        field: &'static str,
        /// Value given.
        value: u64,
        /// Smallest valid value.
        min: u64,
        /// Largest valid value.
        max: u64,
    },
    /// A ratio is out of range, or NaN.
    Real {
        /// Name of the field.
        field: &'static str,
        /// Value given.
        value: f64,
        /// Smallest valid value.
        min: f64,
        /// Largest valid value.
        max: f64,
    },
    /// A duration is out of range.
    Time {
        /// Name of the field.
        field: &'static str,
        /// Value given.
        value: Duration,
        /// Smallest valid value.
        min: Duration,
        /// Largest valid value.
        max: Duration,
    },
}

// === impl WindowConfigError ===

impl fmt::Display for WindowConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole { field, value, min, max } => {
                write!(f, "{field} is {value}: it must be {min} … {max}")
            }
            Self::Real { field, value, min, max } => {
                write!(f, "{field} is {value}: it must be {min} … {max}")
            }
            Self::Time { field, value, min, max } => {
                write!(f, "{field} is {value:?}: it must be {min:?} … {max:?}")
            }
        }
    }
}

impl std::error::Error for WindowConfigError {}
