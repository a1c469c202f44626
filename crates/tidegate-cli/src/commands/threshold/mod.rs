//! `tidegate threshold`: reads and changes busy thresholds of a running gateway.
//! May use: `admin_client`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, ThresholdCommand};
pub use run::run;
