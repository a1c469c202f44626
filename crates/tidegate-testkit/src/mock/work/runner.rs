use super::slots::{WorkId, WorkLoad, WorkRefused, WorkRequest, WorkSettings, WorkSlots};
use crate::mock::faults::Faults;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

/// Runner of work: drives [`WorkSlots`] by the clock and wakes requests.
#[derive(Debug)]
pub(in crate::mock) struct WorkRunner {
    started: Instant,
    inner: Mutex<Inner>,
    /// Wakes the driver for an earlier event.
    wake: Notify,
}

#[derive(Debug)]
struct Inner {
    slots: WorkSlots,
    waiters: HashMap<WorkId, oneshot::Sender<()>>,
    /// Event that the driver waits for.
    awaited: Option<Duration>,
}

/// Handle to a piece of work; a drop cancels it.
struct WorkHandle<'a> {
    work: &'a WorkRunner,
    id: WorkId,
}

// === impl WorkRunner ===

impl WorkRunner {
    pub(in crate::mock) fn new(settings: WorkSettings, started: Instant) -> Self {
        let slots = WorkSlots::new(settings);
        let inner = Inner { slots, waiters: HashMap::new(), awaited: None };
        Self { started, inner: Mutex::new(inner), wake: Notify::new() }
    }

    /// Ends work with time, while it is polled.
    pub(in crate::mock) async fn drive(&self) {
        loop {
            let next = {
                let mut inner = self.lock();
                inner.awaited = inner.slots.next_event();
                inner.awaited
            };
            match next {
                Some(at) => tokio::select! {
                    () = sleep_until(self.started + at) => {}
                    () = self.wake.notified() => {}
                },
                None => self.wake.notified().await,
            }
            // Advances the slots.
            drop(self.at_present());
            tokio::task::yield_now().await;
        }
    }

    /// Waits for a slot and for the duration of the work. A drop cancels it.
    pub(in crate::mock) async fn run(&self, request: WorkRequest) -> Result<(), WorkRefused> {
        let (done, ended) = oneshot::channel();
        let handle = {
            let (mut inner, now) = self.at_present();
            let id = inner.slots.submit(now, request)?;
            inner.waiters.insert(id, done);
            self.wake_if_sooner(&inner);
            WorkHandle { work: self, id }
        };
        // The sender is held until the end.
        let _ = ended.await;
        drop(handle);
        Ok(())
    }

    pub(in crate::mock) fn load(&self) -> WorkLoad {
        self.at_present().0.slots.load()
    }

    /// Applies faults.
    pub(in crate::mock) fn apply_faults(&self, faults: &Faults) {
        let (mut inner, now) = self.at_present();
        inner.slots.set_slow_factor(faults.slow_factor);
        inner.slots.set_frozen(now, faults.frozen);
        inner.slots.set_slots_share(now, faults.slots_share);
        self.wake_if_sooner(&inner);
    }

    /// Wakes the driver if the next event is earlier than the one it waits for.
    fn wake_if_sooner(&self, inner: &Inner) {
        let next = inner.slots.next_event();
        if next.is_some_and(|next| inner.awaited.is_none_or(|awaited| next < awaited)) {
            self.wake.notify_one();
        }
    }

    /// Advances the slots to the present; returns the state and the time.
    fn at_present(&self) -> (MutexGuard<'_, Inner>, Duration) {
        let mut inner = self.lock();
        let now = self.started.elapsed();
        let Inner { slots, waiters, .. } = &mut *inner;
        slots.advance(now, |id| {
            if let Some(waiter) = waiters.remove(&id) {
                let _ = waiter.send(());
            }
        });
        (inner, now)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No holder of the lock panics; if one did, the counts would still be valid.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl WorkHandle ===

impl Drop for WorkHandle<'_> {
    fn drop(&mut self) {
        let (mut inner, now) = self.work.at_present();
        // Removed already at the end of the work.
        if inner.waiters.remove(&self.id).is_some() {
            inner.slots.cancel(now, self.id);
            self.work.wake_if_sooner(&inner);
        }
    }
}
