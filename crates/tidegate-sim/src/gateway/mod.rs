//! Requests through a gateway to upstreams in virtual time: admission, routing, queues, and clients that come
//! back.
//!
//! Counts of its own check at every step what the design promises. May use the decisions that ship, arrivals, the
//! scenario and the measure. Must not know commands or files.

mod admission;
mod clients;
mod compare;
mod event;
mod faults;
mod final_checks;
mod flaw;
mod model;
mod offer;
mod simulation;

pub use compare::{GatewayComparison, GatewayRow, Variant, compare};
pub use flaw::{Flaw, UnknownFlaw};
pub use model::{AdmissionSummary, PriorityAdmission};
pub use simulation::{simulate, simulate_with_admission};
