//! Selection of an executor for a queued attempt: one trait, five strategies.
//!
//! Uses the queue and the fleet of `capacity`. Must not know the dispatcher, the ledger or how orders are carried
//! out.

mod optimistic;
mod policy;
mod pull;
mod queue;
mod semaphore;
mod strategy;

pub(super) use policy::{DispatchState, PlacementPolicy, Protocol, Selection};
pub use policy::{Placement, UnknownPlacement};
pub(super) use strategy::Strategy;
