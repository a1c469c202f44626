//! Synchronization primitives of the standard library, or loom's or shuttle's in their stead: the models in
//! `tests/` run the shipped algorithm, not a copy of it.
//!
//! Features choose, not `--cfg loom`: with that tokio would change too, and every dependency would be built again.

#[cfg(not(any(feature = "__loom", feature = "__shuttle")))]
pub(super) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

#[cfg(feature = "__loom")]
pub(super) use loom::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

#[cfg(all(feature = "__shuttle", not(feature = "__loom")))]
pub(super) use shuttle::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

/// Alone on its cache line (two of them, which processors fetch together): what one side writes all the time
/// does not slow the other side's reads.
#[repr(align(128))]
pub(super) struct Padded<T>(pub(super) T);

/// No lock here is held while a task is woken, or a message is weighed or dropped: nothing foreign can come back
/// to it, or leave it in the middle of a change.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
