//! What other limits would have done to a load that was recorded.
//!
//! A [`Recording`] has the decisions of a gateway as they were, one line a request. [`compare`] lets its
//! requests come again, at the same moments, to the admission that ships.

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
pub use read::{LINE_BYTES_MAX, Reader, RecordingError};
pub use recording::{Arrival, Recording, Verdict};
