//! What came of a run, simulated or real: figures, tables and series, and whether what was expected came.

mod chart;
mod check;
mod findings;
pub mod html;
mod never;
mod table;
pub mod text;
mod whole;
mod words;

pub use chart::{Chart, Line};
pub use check::{Check, judge};
pub use findings::{Figure, Findings};
pub use never::number_or_never;
pub use table::{Cell, Table};
pub use whole::{FaultSpan, Report, ScheduleReport};
