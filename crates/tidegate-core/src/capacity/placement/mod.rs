//! Where a waiting attempt goes, and by which protocol it gets there: one trait, five strategies.

mod optimistic;
mod place;
mod pull;
mod queue;
mod semaphore;
mod strategy;

pub(super) use place::{Place as PlaceNext, Protocol, Step, World};
pub use place::{Placement, UnknownPlacement};
pub(super) use strategy::Strategy;
