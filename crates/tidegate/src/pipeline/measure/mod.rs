//! Measurement of the stages and control of their windows: meters, the regulator, the signal to senders.
//!
//! May use channels' gauges and the scheduler of `tidegate-core`. Must not know records, connections or a store.

pub(super) mod meter;
pub(super) mod partial_bytes;
pub(super) mod regulator;
pub(super) mod signal_cell;
pub(super) mod snapshot;
