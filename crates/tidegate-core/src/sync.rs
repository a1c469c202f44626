//! The atomics of this crate, or those of loom or shuttle in their place with the features `__loom` and
//! `__shuttle`, so that the models in `tests/` explore the very code that ships.

#[cfg(not(any(feature = "__loom", feature = "__shuttle")))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "__loom")]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

#[cfg(all(feature = "__shuttle", not(feature = "__loom")))]
pub(crate) use shuttle::sync::atomic::{AtomicU64, Ordering};
