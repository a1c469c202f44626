//! Synchronization primitives and time of the standard library and of tokio, or shuttle's in their place: the
//! models in `tests/` run the shipped queue, not a copy of it.

#[cfg(not(all(feature = "__shuttle", not(feature = "__loom"))))]
pub(super) use shipped::{ArcSwap, Guard, now, timeout};
#[cfg(not(all(feature = "__shuttle", not(feature = "__loom"))))]
pub(super) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence},
};

#[cfg(all(feature = "__shuttle", not(feature = "__loom")))]
pub(super) use modelled::{ArcSwap, Guard, now, timeout};
#[cfg(all(feature = "__shuttle", not(feature = "__loom")))]
pub(super) use shuttle::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence},
};

/// The end of a time in which a future was not ready.
pub(super) struct Elapsed;

/// Locks state of which every change is one call: a panic in between leaves it correct.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(not(all(feature = "__shuttle", not(feature = "__loom"))))]
mod shipped {
    use super::Elapsed;
    use std::future::Future;
    use std::time::{Duration, Instant};

    pub use arc_swap::{ArcSwap, Guard};

    pub fn now() -> Instant {
        Instant::now()
    }

    pub async fn timeout<F: Future>(after: Duration, future: F) -> Result<F::Output, Elapsed> {
        tokio::time::timeout(after, future).await.map_err(|_| Elapsed)
    }
}

#[cfg(all(feature = "__shuttle", not(feature = "__loom")))]
mod modelled {
    use super::{AtomicBool, Elapsed, Mutex, Ordering, lock};
    use std::future::{Future, poll_fn};
    use std::ops::Deref;
    use std::pin::pin;
    use std::sync::{Arc, OnceLock};
    use std::task::Poll;
    use std::time::{Duration, Instant};

    /// Timeouts from here on never end: a wake-up that is lost is a deadlock then, which shuttle reports.
    const NEVER: Duration = Duration::from_secs(10);

    /// A value that is replaced as a whole. Each load and each store is a step of its own.
    #[derive(Debug, Default)]
    pub struct ArcSwap<T>(Mutex<Arc<T>>);

    /// A value that was loaded.
    pub struct Guard<T>(T);

    impl<T> ArcSwap<T> {
        pub fn from_pointee(value: T) -> Self {
            Self(Mutex::new(Arc::new(value)))
        }

        pub fn load(&self) -> Guard<Arc<T>> {
            Guard(self.load_full())
        }

        pub fn load_full(&self) -> Arc<T> {
            Arc::clone(&lock(&self.0))
        }

        pub fn store(&self, value: Arc<T>) {
            let old = std::mem::replace(&mut *lock(&self.0), value);
            drop(old);
        }
    }

    impl<T> Deref for Guard<T> {
        type Target = T;

        fn deref(&self) -> &T {
            &self.0
        }
    }

    /// Time stands still, so that the same schedule gives the same decisions.
    pub fn now() -> Instant {
        static STARTED: OnceLock<Instant> = OnceLock::new();
        *STARTED.get_or_init(Instant::now)
    }

    /// Ends a wait that is short enough at any moment: when the schedule lets another thread run.
    pub async fn timeout<F: Future>(after: Duration, future: F) -> Result<F::Output, Elapsed> {
        let mut future = pin!(future);
        let has_elapsed = Arc::new(AtomicBool::new(false));
        let mut is_armed = after >= NEVER;
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            if has_elapsed.load(Ordering::SeqCst) {
                return Poll::Ready(Err(Elapsed));
            }
            if !std::mem::replace(&mut is_armed, true) {
                let (has_elapsed, waker) = (Arc::clone(&has_elapsed), context.waker().clone());
                shuttle::thread::spawn(move || {
                    has_elapsed.store(true, Ordering::SeqCst);
                    waker.wake();
                });
            }
            Poll::Pending
        })
        .await
    }
}
