//! Tables that compare placements: over tasks of one kind, and in a scenario.
//!
//! May use the simulation of executors. Must not know how it works inside.

mod placements;
mod side_by_side;
mod table;

pub use placements::{PlacementComparison, PlacementRow, compare};
pub use side_by_side::{PlacementFigures, PlacementsInScenario, compare_in};
