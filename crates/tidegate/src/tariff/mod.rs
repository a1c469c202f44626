//! Tariffs, the evaluator that prices by them, and the TOML file that defines them.
//!
//! Everything except the file is `tidegate_core::tariff`, under the same names. Uses the core and a TOML parser.
//! Must not know stores, pipelines or the current time.

mod diagnostics;
mod file;
mod line_index;
mod read_tariff;
mod table;
mod values;

pub use diagnostics::{FileWarning, TariffDiagnostic, TariffDiagnostics};
pub use file::{TariffFile, TariffFileError};
pub use tidegate_core::tariff::*;
