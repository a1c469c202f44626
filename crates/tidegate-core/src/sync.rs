//! The atomics of this crate, or loom's in their place under `--cfg loom`, so that the models in `tests/`
//! explore the very code that ships.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
