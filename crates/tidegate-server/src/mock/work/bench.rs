use super::places::{WorkAsk, WorkId, WorkLoad, WorkRefused, WorkSettings, Workplaces};
use crate::mock::faults::Faults;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

/// What turns the decisions of [`Workplaces`] into time that passes and requests that go on.
#[derive(Debug)]
pub(in crate::mock) struct Bench {
    started: Instant,
    inner: Mutex<Inner>,
    /// Something ends before what the driver waits for.
    sooner: Notify,
}

#[derive(Debug)]
struct Inner {
    places: Workplaces,
    waiters: HashMap<WorkId, oneshot::Sender<()>>,
    /// What the driver waits for.
    awaited: Option<Duration>,
}

/// A piece of work, held by the request that it is for. Dropped before its end, it is cancelled.
struct Held<'a> {
    bench: &'a Bench,
    id: WorkId,
}

// === impl Bench ===

impl Bench {
    pub(in crate::mock) fn new(settings: WorkSettings, started: Instant) -> Self {
        let places = Workplaces::new(settings);
        let inner = Inner { places, waiters: HashMap::new(), awaited: None };
        Self { started, inner: Mutex::new(inner), sooner: Notify::new() }
    }

    /// Ends work as time passes, for as long as it is polled.
    pub(in crate::mock) async fn drive(&self) {
        loop {
            let next = {
                let mut inner = self.lock();
                inner.awaited = inner.places.next_event();
                inner.awaited
            };
            match next {
                Some(at) => tokio::select! {
                    () = sleep_until(self.started + at) => {}
                    () = self.sooner.notified() => {}
                },
                None => self.sooner.notified().await,
            }
            // Brings the places up to the present.
            drop(self.present());
            tokio::task::yield_now().await;
        }
    }

    /// Waits for a place, and then for as long as the work takes. Cancel safe: what is dropped is cancelled.
    pub(in crate::mock) async fn work(&self, ask: WorkAsk) -> Result<(), WorkRefused> {
        let (done, ended) = oneshot::channel();
        let held = {
            let (mut inner, now) = self.present();
            let id = inner.places.submit(now, ask)?;
            inner.waiters.insert(id, done);
            self.look_again(&inner);
            Held { bench: self, id }
        };
        // An end that is not told is none: the sender lives until then.
        let _ = ended.await;
        drop(held);
        Ok(())
    }

    pub(in crate::mock) fn load(&self) -> WorkLoad {
        self.present().0.places.load()
    }

    /// Does what the faults say.
    pub(in crate::mock) fn suffer(&self, faults: &Faults) {
        let (mut inner, now) = self.present();
        inner.places.set_slow_factor(faults.slow_factor);
        inner.places.set_frozen(now, faults.frozen);
        inner.places.set_places_share(now, faults.places_share);
        self.look_again(&inner);
    }

    /// Wakes the driver if it waits for something later than what is next. If that is later than what it waits
    /// for, it finds out by itself.
    fn look_again(&self, inner: &Inner) {
        let next = inner.places.next_event();
        if next.is_some_and(|next| inner.awaited.is_none_or(|awaited| next < awaited)) {
            self.sooner.notify_one();
        }
    }

    /// The places as they are now, and when that is.
    fn present(&self) -> (MutexGuard<'_, Inner>, Duration) {
        let mut inner = self.lock();
        let now = self.started.elapsed();
        let Inner { places, waiters, .. } = &mut *inner;
        places.advance(now, |id| {
            if let Some(waiter) = waiters.remove(&id) {
                let _ = waiter.send(());
            }
        });
        (inner, now)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing that holds it panics; if it did, the numbers would still be numbers.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Held ===

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let (mut inner, now) = self.bench.present();
        // Gone already when it has ended.
        if inner.waiters.remove(&self.id).is_some() {
            inner.places.cancel(now, self.id);
            self.bench.look_again(&inner);
        }
    }
}
