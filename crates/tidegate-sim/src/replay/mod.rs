//! Replay of recorded load with other limits.
//!
//! A [`Recording`] holds the decisions of a gateway, one line a request. [`compare`] sends its requests at the
//! same times through the admission that ships. May use the format in `tidegate-core`. Must not know where a
//! recording is.

mod compare;
mod limits;
mod outcome;
mod read;
mod recording;
mod show;
mod sweep;

pub use compare::{Comparison, Replayed, compare};
pub use limits::{Limits, Setting};
pub use outcome::{Outcome, Share};
pub use read::{Reader, RecordingError};
pub use recording::{Arrival, Recording, Verdict};
pub use tidegate_core::decision_log::LINE_BYTES_MAX;
