//! What the channel's algorithm is made of: the standard library's, or loom's or shuttle's in their place, so
//! that the models in `tests/` run the shipped algorithm and not a copy of it.
//!
//! The names of the configurations are our own: with `--cfg loom` tokio would change too.

#[cfg(not(any(tidegate_loom, tidegate_shuttle)))]
pub(super) use {
    crossbeam_queue::SegQueue as Queue,
    std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence},
    std::sync::{Arc, Mutex, MutexGuard},
};

#[cfg(tidegate_loom)]
pub(super) use {
    loom::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence},
    loom::sync::{Arc, Mutex, MutexGuard},
};

#[cfg(all(tidegate_shuttle, not(tidegate_loom)))]
pub(super) use {
    shuttle::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence},
    shuttle::sync::{Arc, Mutex, MutexGuard},
};

#[cfg(any(tidegate_loom, tidegate_shuttle))]
pub(super) use model::Queue;

/// Alone on its cache line (two of them, which processors fetch together): what one side writes all the time
/// does not slow the other side's reads.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Padded<T>(pub(super) T);

/// A panic of somebody's waker is no reason to refuse everybody else: no lock here is held over foreign code.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(any(tidegate_loom, tidegate_shuttle))]
mod model {
    use super::{AtomicUsize, Mutex, Ordering, lock};
    use std::collections::VecDeque;

    /// The queue in models. Emptiness is told by a count beside the lock, as weakly ordered as a list queue's: a
    /// pop of an empty queue takes no lock, and so hides no missing fence.
    pub(in super::super) struct Queue<T> {
        count: AtomicUsize,
        items: Mutex<VecDeque<T>>,
    }

    impl<T> Queue<T> {
        pub(in super::super) fn new() -> Self {
            Self { count: AtomicUsize::new(0), items: Mutex::new(VecDeque::new()) }
        }

        pub(in super::super) fn push(&self, item: T) {
            lock(&self.items).push_back(item);
            self.count.fetch_add(1, Ordering::Release);
        }

        pub(in super::super) fn pop(&self) -> Option<T> {
            if self.count.load(Ordering::Acquire) == 0 {
                return None;
            }
            let item = lock(&self.items).pop_front();
            if item.is_some() {
                self.count.fetch_sub(1, Ordering::Relaxed);
            }
            item
        }
    }
}
