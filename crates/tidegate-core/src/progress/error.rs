use super::bounds::{COUNTERS_MAX, GAUGES_MAX, HISTOGRAMS_MAX, NAME_BYTES_MAX};
use std::fmt;

/// Error of reported progress. Nothing of the report is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgressError {
    /// Line longer than the limit.
    TooLong {
        /// Most bytes of a line.
        bytes_max: usize,
    },
    /// Not JSON.
    NotJson(String),
    /// Field that is unknown, or of another type.
    WrongType(String),
    /// More counters than the limit.
    Counters {
        /// Counters given.
        given: usize,
    },
    /// More gauges than the limit.
    Gauges {
        /// Gauges given.
        given: usize,
    },
    /// More histograms than the limit.
    Histograms {
        /// Histograms given.
        given: usize,
    },
    /// Histogram with buckets that are not allowed.
    Buckets {
        /// Name of the histogram.
        name: String,
        /// Reason, with what is expected.
        why: String,
    },
    /// Name of a counter, gauge or histogram that is empty, too long or has other characters.
    Name {
        /// Name given, shortened.
        given: String,
    },
    /// Gauge that is not a finite number.
    NotFinite {
        /// Name of the gauge.
        name: String,
    },
}

// === impl ProgressError ===

impl ProgressError {
    /// Name of the error in responses, labels and logs.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "progress_too_long",
            Self::NotJson(_) => "not_json",
            Self::WrongType(_) => "wrong_type",
            Self::Counters { .. } | Self::Gauges { .. } | Self::Histograms { .. } => {
                "progress_too_many"
            }
            Self::Buckets { .. } => "progress_buckets",
            Self::Name { .. } => "progress_name",
            Self::NotFinite { .. } => "out_of_range",
        }
    }
}

impl fmt::Display for ProgressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes_max } => write!(f, "it is longer than {bytes_max} bytes"),
            Self::NotJson(why) => write!(f, "it is not JSON: {why}"),
            Self::WrongType(why) => write!(f, "it is invalid: {why}"),
            Self::Counters { given } => {
                write!(f, "counters: {given} were given; expected at most {COUNTERS_MAX}")
            }
            Self::Gauges { given } => {
                write!(f, "gauges: {given} were given; expected at most {GAUGES_MAX}")
            }
            Self::Histograms { given } => {
                write!(f, "histograms: {given} were given; expected at most {HISTOGRAMS_MAX}")
            }
            Self::Buckets { name, why } => write!(f, "histograms: {name} has {why}"),
            Self::Name { given } => write!(
                f,
                "name: {given:?} was given; expected 1 … {NAME_BYTES_MAX} of letters, digits and \
                 . _ -"
            ),
            Self::NotFinite { name } => write!(f, "gauges: {name} is not a finite number"),
        }
    }
}

impl std::error::Error for ProgressError {}
