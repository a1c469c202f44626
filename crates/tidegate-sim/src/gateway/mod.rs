//! Requests through a gateway to workers, in virtual time over the decisions that ship: who is admitted, which
//! worker gets it, who waits in its line, and when those who are refused come back.
//!
//! What the design promises is checked at every step, by counts that are not those of the decisions themselves.

mod admission;
mod advice;
mod check;
mod clients;
mod compare;
mod event;
mod faults;
mod finale;
mod flaw;
mod fleet;
mod line;
mod offer;
mod request;
mod settings;
mod simulation;
mod trackers;
mod worker;

pub use compare::{GatewayComparison, GatewayRow, Variant, compare};
pub use flaw::{Flaw, UnknownFlaw};
pub use simulation::simulate;
