//! What usage costs: tariffs, the evaluator that prices by them, and the TOML file that they are written in.
//!
//! Everything but the file is `tidegate_core::tariff`, under the same names.

mod file;
mod lines;
mod mistakes;
mod read_tariff;
mod table;
mod values;

pub use file::{TariffFile, TariffFileError};
pub use mistakes::{FileMistake, FileMistakes, FileWarning};
pub use tidegate_core::tariff::*;
