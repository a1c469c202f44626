//! Decisions of a running gateway, for those who want to know what other limits would have done.
//!
//! While nobody records, a request costs one look at a flag. While somebody does, what became of a request is
//! put into a bounded buffer when its end is known; what the buffer has no room for is counted, and told.

mod answer;
mod decision;
mod entry;
mod journal;
mod stream;

pub use answer::{RecordError, answer};
pub use decision::{Decision, Verdict};
pub use entry::{Entry, Scribe};
pub use journal::{Journal, RECORDERS_MAX};
pub use stream::DecisionStream;
