use super::connection::Connection;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tidegate_core::sequence::{SeqStatus, SeqWindow};

/// Senders that are remembered. Those that are forgotten are read from the store again when they come back.
const SENDERS_MAX: usize = 65_536;

/// Sequence windows of senders, with batches that are not durable yet.
#[derive(Debug, Default)]
pub(crate) struct Senders {
    known: HashMap<Arc<str>, Known>,
}

#[derive(Debug)]
struct Known {
    /// `None` when it has to be read from the store again.
    window: Option<SeqWindow>,
    /// The client that owns the name: stored, or claimed by a connection that has stored nothing yet.
    owner: Option<Arc<str>>,
    /// The connection that speaks for this sender now.
    speaker: Weak<Connection>,
    /// The number of the last batch of the pipeline that was this sender's.
    touched: u64,
}

/// Decision on a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// New: to be counted.
    Count,
    /// Counted before, or given up by its sender.
    Repeat,
    /// Its number is too far ahead.
    TooFar,
    /// A batch that settles numbers which its sender can't have sent.
    Jump,
    /// This connection does not speak for this sender, or not any more.
    Superseded,
}

// === impl Senders ===

impl Senders {
    /// True if the sequence window of a sender is known; if not, it must be [loaded](Self::load).
    pub(crate) fn knows(&self, sender: &str) -> bool {
        self.known.get(sender).is_some_and(|known| known.window.is_some())
    }

    /// Forgets the sequence window of a sender that differs from the stored one: it must be loaded again.
    pub(crate) fn doubt(&mut self, sender: &str) {
        if let Some(known) = self.known.get_mut(sender) {
            known.window = None;
        }
    }

    /// Adds the stored sequence window of a sender. `durable` is the last batch of the pipeline that is durable:
    /// only what was not touched since may be forgotten for it.
    pub(crate) fn load(
        &mut self,
        sender: Arc<str>,
        (window, owner): (SeqWindow, Option<Arc<str>>),
        durable: u64,
    ) {
        if self.known.len() >= SENDERS_MAX {
            self.forget(durable);
        }
        let unknown = Known { window: None, owner: None, speaker: Weak::new(), touched: 0 };
        let known = self.known.entry(sender).or_insert(unknown);
        known.window.get_or_insert(window);
        known.owner = owner.or(known.owner.take());
    }

    /// Claims the name of a sender for the owner of a connection. Returns false if it belongs to another: one that
    /// has stored batches under it, or is connected.
    pub(crate) fn claim(&mut self, sender: &str, owner: Option<Arc<str>>) -> bool {
        let Some(known) = self.known.get_mut(sender) else { return true };
        let is_unused = known.touched == 0
            && known.window.as_ref().is_none_or(|window| window.highest() == 0)
            && known.speaker.strong_count() == 0;
        if owner.is_none() || owner == known.owner {
            return true;
        }
        if known.owner.is_some() && !is_unused {
            return false;
        }
        known.owner = owner;
        true
    }

    /// A connection says that it speaks for a sender. Gives the one that did so far, if it is another.
    pub(crate) fn speak(
        &mut self,
        sender: &str,
        connection: &Arc<Connection>,
    ) -> Option<Arc<Connection>> {
        let known = self.known.get_mut(sender)?;
        let before = std::mem::replace(&mut known.speaker, Arc::downgrade(connection)).upgrade();
        before.filter(|before| !Arc::ptr_eq(before, connection))
    }

    /// Decides on a batch, the `number`th of the pipeline.
    pub(crate) fn see(
        &mut self,
        sender: &str,
        connection: &Arc<Connection>,
        (seq, settled): (u64, u64),
        number: u64,
    ) -> Verdict {
        let Some(known) = self.known.get_mut(sender) else { return Verdict::Superseded };
        if !std::ptr::eq(known.speaker.as_ptr(), Arc::as_ptr(connection)) {
            return Verdict::Superseded;
        }
        let window = known.window.get_or_insert_default();
        let low = window.low();
        if settled > connection.settles_max(low) {
            return Verdict::Jump;
        }
        window.settle(settled);
        let status = window.record(seq);
        if status != SeqStatus::TooFar {
            connection.took(seq, low.max(settled));
        }
        match status {
            SeqStatus::New => {
                known.touched = number;
                Verdict::Count
            }
            SeqStatus::Duplicate => Verdict::Repeat,
            SeqStatus::TooFar => Verdict::TooFar,
        }
    }

    /// Forgets senders whose batches are all durable and who have no connection. What is left is bounded by the
    /// connections that are open and by what the pipeline holds.
    fn forget(&mut self, durable: u64) {
        self.known.retain(|_, known| known.touched > durable || known.speaker.strong_count() > 0);
    }
}
