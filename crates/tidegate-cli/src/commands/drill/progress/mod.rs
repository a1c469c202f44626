//! Progress of a drill on the terminal.
//! May use: nothing of the drill.
//! Must not know: worlds, scenarios, reports.

mod bar;
mod display;

pub use bar::Bar;
pub use display::{ProgressDisplay, ProgressState};
