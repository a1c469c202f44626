use std::task::Waker;

/// How many are woken for each time a lock is taken.
const WAKES_MAX: usize = 16;

/// Wakers that are woken once no lock is held: a waker may run anything.
#[derive(Default)]
pub(super) struct Wakes {
    wakers: [Option<Waker>; WAKES_MAX],
    count: usize,
}

// === impl Wakes ===

impl Wakes {
    pub(super) fn is_full(&self) -> bool {
        self.count == WAKES_MAX
    }

    pub(super) fn add(&mut self, waker: Option<Waker>) {
        self.wakers[self.count] = waker;
        self.count += 1;
    }

    /// Whether there may be more to wake.
    pub(super) fn wake_all(&mut self) -> bool {
        let full = self.is_full();
        for waker in self.wakers.iter_mut().take(self.count).filter_map(Option::take) {
            waker.wake();
        }
        self.count = 0;
        full
    }
}
