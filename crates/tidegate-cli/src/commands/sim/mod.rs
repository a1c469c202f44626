//! `tidegate sim`: scenarios in virtual time, and settings side by side.

mod command;
mod compare;
mod heed;
mod many;
mod one;
mod recorded;
mod replay;
mod run;
mod scenario;

pub use run::run;
