use super::{Appended, BatchRefusal, Origin, PricedBatch, name};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_core::sequence::{SeqStatus, SeqWindow};

/// Sequence windows of senders while batches are decided one after the other.
pub(crate) struct Windows {
    by_sender: HashMap<Arc<str>, Window>,
}

struct Window {
    now: SeqWindow,
    changed: bool,
}

/// Decides each batch: new, repeated or refused.
pub(crate) fn decide<'a>(
    batches: impl IntoIterator<Item = &'a PricedBatch>,
    windows: &mut Windows,
) -> Vec<Appended> {
    batches.into_iter().map(|batch| windows.decide(batch)).collect()
}

/// The senders whose windows must be known to decide batches, each once, in order.
pub(crate) fn senders<'a>(batches: impl IntoIterator<Item = &'a PricedBatch>) -> Vec<Arc<str>> {
    let names = batches.into_iter().filter(|batch| name::check(batch).is_ok());
    let mut senders: Vec<_> = names
        .filter_map(|batch| batch.origin.as_ref())
        .map(|origin| origin.sender.clone())
        .collect();
    senders.sort();
    senders.dedup();
    senders
}

// === impl Windows ===

impl Windows {
    pub(crate) fn new(known: impl IntoIterator<Item = (Arc<str>, SeqWindow)>) -> Self {
        let window = |(sender, now)| (sender, Window { now, changed: false });
        Self { by_sender: known.into_iter().map(window).collect() }
    }

    /// The windows that are no longer as they were.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&Arc<str>, &SeqWindow)> {
        let changed = self.by_sender.iter().filter(|(_, window)| window.changed);
        changed.map(|(sender, window)| (sender, &window.now))
    }

    fn decide(&mut self, batch: &PricedBatch) -> Appended {
        if let Err(refused) = name::check(batch) {
            return Appended::Refused(refused);
        }
        match &batch.origin {
            Some(origin) => self.see(origin),
            None => Appended::New,
        }
    }

    fn see(&mut self, origin: &Origin) -> Appended {
        let window = self
            .by_sender
            .entry(origin.sender.clone())
            .or_insert_with(|| Window { now: SeqWindow::default(), changed: false });
        if origin.settled > window.now.low() {
            window.now.settle(origin.settled);
            window.changed = true;
        }
        match window.now.record(origin.seq) {
            SeqStatus::New => {
                window.changed = true;
                Appended::New
            }
            SeqStatus::Duplicate => Appended::Repeat,
            SeqStatus::TooFar => Appended::Refused(BatchRefusal::TooFar),
        }
    }
}
