//! A report as one page in HTML that opens offline: it refers to nothing but itself.

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
