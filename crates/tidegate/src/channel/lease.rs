use super::credit::credits::Credits;
use super::credit::gate::Gate;
use super::gauge::Load;
use super::sync::Arc;
use super::weight::Weight;
use std::fmt;

/// The credits of messages that were received and are still being worked on.
///
/// They count as in flight until it is dropped: a window then bounds what a stage holds, not only what waits at
/// its entrance. It may be sent to another task and outlive the receiver.
#[must_use = "dropped at once, it holds no credits"]
pub struct Lease {
    gate: Arc<Gate>,
    credits: Credits,
}

// === impl Lease ===

impl Lease {
    pub(super) fn new(gate: &Arc<Gate>, credits: Credits) -> Self {
        Self { gate: Arc::clone(gate), credits }
    }

    /// Items and bytes that the lease still holds.
    #[must_use]
    pub fn load(&self) -> Load {
        Load::of(self.credits)
    }

    /// Returns a part of it: at most what it still holds.
    pub fn release(&mut self, weight: Weight) {
        let part = self.take(weight);
        if !part.is_none() {
            self.gate.end_lease(part);
        }
    }

    /// A part of it as a lease of its own: at most what it still holds.
    pub fn split(&mut self, weight: Weight) -> Self {
        let credits = self.take(weight);
        Self { gate: Arc::clone(&self.gate), credits }
    }

    fn take(&mut self, weight: Weight) -> Credits {
        let part = Credits::exactly(weight).min(self.credits);
        self.credits -= part;
        part
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.credits.is_none() {
            self.gate.end_lease(self.credits);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.load()).finish()
    }
}
