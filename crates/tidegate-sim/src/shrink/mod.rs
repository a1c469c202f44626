//! The shortest replay of something that must never be: the same scenario with less in it, as long as it still
//! shows the same.

mod edits;
mod search;

pub use edits::Edits;
pub use search::{Replay, shrink};
