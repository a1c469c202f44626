//! A report as one HTML page that opens offline and refers to nothing but itself.
//!
//! May use the report. Must not know how its figures were measured.

mod chart;
mod escape;
mod page;
mod scale;
mod sections;
mod series;
mod spans;

#[cfg(test)]
mod tests;

pub use page::page;
