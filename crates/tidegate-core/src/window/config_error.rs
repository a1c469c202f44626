use std::fmt;
use std::time::Duration;

/// What is wrong with a [`WindowConfig`](super::WindowConfig).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WindowConfigError {
    /// A whole number is out of its range.
    Whole {
        /// The field.
        field: &'static str,
        /// What it was.
        value: u64,
        /// The least it may be.
        min: u64,
        /// The most it may be.
        max: u64,
    },
    /// A ratio is out of its range, or not a number.
    Real {
        /// The field.
        field: &'static str,
        /// What it was.
        value: f64,
        /// The least it may be.
        min: f64,
        /// The most it may be.
        max: f64,
    },
    /// A time is out of its range.
    Time {
        /// The field.
        field: &'static str,
        /// What it was.
        value: Duration,
        /// The least it may be.
        min: Duration,
        /// The most it may be.
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
