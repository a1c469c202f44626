//! The atomics of this crate, or loom's in their place with the feature `__loom`, so that the models in `tests/`
//! explore the very code that ships.

#[cfg(not(feature = "__loom"))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "__loom")]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
