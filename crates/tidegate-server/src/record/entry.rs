use super::{Decision, Journal, Verdict};
use crate::proxy::Rejection;
use std::sync::Arc;
use std::time::Instant;
use tidegate::MessagePriority;

/// Writes down what one serving thread decides. Each thread has its own, because what all requests count up and
/// down must not be shared between threads.
#[derive(Debug)]
pub struct Scribe {
    journal: Arc<Journal>,
}

/// One request, which is told to those who record when it is over: dropped early, because its client left or
/// its task was cancelled, as well.
#[derive(Debug)]
#[must_use = "a request is written down when this is dropped"]
pub struct Entry {
    scribe: Arc<Scribe>,
    decided: Instant,
    priority: MessagePriority,
    client: Option<Box<str>>,
    verdict: Verdict,
    had_place: bool,
}

// === impl Scribe ===

impl Scribe {
    /// A scribe of this journal.
    #[must_use]
    pub fn new(journal: Arc<Journal>) -> Self {
        Self { journal }
    }

    /// A request that was just decided. Who sent it, and the moment to the microsecond, is looked up only if
    /// somebody records.
    #[inline]
    pub fn entry<'a>(
        self: &Arc<Self>,
        started: Instant,
        priority: MessagePriority,
        client: impl FnOnce() -> Option<&'a str>,
    ) -> Entry {
        let (decided, client) = match self.journal.is_on() {
            true => (Instant::now(), client().map(Box::from)),
            false => (started, None),
        };
        let (scribe, verdict) = (Arc::clone(self), Verdict::Admitted);
        Entry { scribe, decided, priority, client, verdict, had_place: true }
    }
}

// === impl Entry ===

impl Entry {
    /// It was not admitted.
    pub fn refused(mut self, rejection: Rejection) {
        self.verdict = Verdict::Rejected(rejection);
        self.had_place = false;
    }

    /// It was admitted, and refused after that for want of something else than a place.
    pub fn rejected(mut self, rejection: Rejection) {
        self.verdict = Verdict::Rejected(rejection);
    }
}

impl Drop for Entry {
    #[inline]
    fn drop(&mut self) {
        let journal = &self.scribe.journal;
        if journal.is_on() {
            journal.tell(&Decision {
                decided: self.decided,
                took: self.had_place.then(|| self.decided.elapsed()),
                priority: self.priority,
                verdict: self.verdict,
                client: self.client.take(),
            });
        }
    }
}
