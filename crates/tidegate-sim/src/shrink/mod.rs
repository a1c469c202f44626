//! The smallest scenario that still shows a violation: parts are left out as long as the violation remains.
//!
//! May use the scenario. Must not know how it is run: the caller runs each candidate.

mod edits;
mod search;

pub use edits::Edits;
pub use search::{Replay, shrink};
