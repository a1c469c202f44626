//! What usage costs: the tariffs of `tidegate_core`, and the file that they are written in.

pub use tidegate_core::tariff::*;
