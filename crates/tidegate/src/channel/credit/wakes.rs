use std::task::Waker;

/// Number of tasks woken for each time that the lock is taken.
const WAKES_MAX: usize = 16;

/// Wakers that are woken once no lock is held: a waker may run anything.
#[derive(Default)]
pub(in crate::channel) struct Wakes {
    wakers: [Option<Waker>; WAKES_MAX],
    count: usize,
}

// === impl Wakes ===

impl Wakes {
    pub(in crate::channel) fn is_full(&self) -> bool {
        self.count == WAKES_MAX
    }

    pub(in crate::channel) fn add(&mut self, waker: Option<Waker>) {
        self.wakers[self.count] = waker;
        self.count += 1;
    }

    /// Wakes all. True if more tasks may have to be woken.
    pub(in crate::channel) fn wake_all(&mut self) -> bool {
        let full = self.is_full();
        for waker in self.wakers.iter_mut().take(self.count).filter_map(Option::take) {
            waker.wake();
        }
        self.count = 0;
        full
    }
}
