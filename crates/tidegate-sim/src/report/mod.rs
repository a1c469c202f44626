//! Reports of runs, simulated or real: figures, tables, charts and the checks of expectations.
//!
//! May use the scenario. Must not know what was run, or how it was measured.

mod chart;
mod check;
mod findings;
mod format;
pub mod html;
mod never;
mod table;
pub mod text;
mod whole;

pub use chart::{Chart, Line};
pub use check::{Check, judge};
pub use findings::{Figure, Findings};
pub use never::number_or_never;
pub use table::{Cell, Table};
pub use whole::{FaultSpan, Report, ScheduleReport};
