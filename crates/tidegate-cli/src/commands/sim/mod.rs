//! `tidegate sim`: scenarios in virtual time, and settings side by side.

mod compare;
mod many;
mod one;
mod replay;
mod run;
mod scenario;

pub use run::run;
