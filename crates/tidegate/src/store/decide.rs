use super::{Appended, BatchRefusal, Origin, PricedBatch, name};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_core::sequence::{SeqStatus, SeqWindow};

/// Sequence windows of senders while batches are decided one after the other.
pub(crate) struct Windows {
    by_sender: HashMap<Arc<str>, Window>,
}

/// Stored state of a sender.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoredSender {
    pub(crate) window: SeqWindow,
    /// The client that owns the name, if any does.
    pub(crate) owner: Option<Arc<str>>,
}

struct Window {
    now: StoredSender,
    changed: bool,
}

/// Decides each batch: new, repeated or refused. One that is new is refused if `admit` says so, and then its
/// number stays free; otherwise `admit` gives the number of series that it begins.
pub(crate) fn decide<'a>(
    batches: impl IntoIterator<Item = &'a PricedBatch>,
    windows: &mut Windows,
    mut admit: impl FnMut(&PricedBatch) -> Result<u64, BatchRefusal>,
) -> Vec<(Appended, u64)> {
    let decide = |batch| {
        let mut begun = 0;
        let admit = |batch: &PricedBatch| admit(batch).map(|series| begun = series);
        (windows.decide(batch, admit), begun)
    };
    batches.into_iter().map(decide).collect()
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
    pub(crate) fn new(known: impl IntoIterator<Item = (Arc<str>, StoredSender)>) -> Self {
        let window = |(sender, now)| (sender, Window { now, changed: false });
        Self { by_sender: known.into_iter().map(window).collect() }
    }

    /// The windows that are no longer as they were.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&Arc<str>, &StoredSender)> {
        let changed = self.by_sender.iter().filter(|(_, window)| window.changed);
        changed.map(|(sender, window)| (sender, &window.now))
    }

    fn decide(
        &mut self,
        batch: &PricedBatch,
        admit: impl FnOnce(&PricedBatch) -> Result<(), BatchRefusal>,
    ) -> Appended {
        if let Err(refused) = name::check(batch) {
            return Appended::Refused(refused);
        }
        match &batch.origin {
            Some(origin) => self.see(origin, || admit(batch)),
            None => admit(batch).map_or_else(Appended::Refused, |()| Appended::New),
        }
    }

    fn see(
        &mut self,
        origin: &Origin,
        admit: impl FnOnce() -> Result<(), BatchRefusal>,
    ) -> Appended {
        let window = self
            .by_sender
            .entry(origin.sender.clone())
            .or_insert_with(|| Window { now: StoredSender::default(), changed: false });
        let owner = &window.now.owner;
        if origin.owner.is_some() && owner.is_some() && origin.owner != *owner {
            return Appended::Refused(BatchRefusal::SenderOwned);
        }
        let numbers = &mut window.now.window;
        if origin.settled > numbers.low() {
            numbers.settle(origin.settled);
            window.changed = true;
        }
        if numbers.status(origin.seq) == SeqStatus::New
            && let Err(refused) = admit()
        {
            return Appended::Refused(refused);
        }
        match numbers.record(origin.seq) {
            SeqStatus::New => {
                // The first batch under a name claims it.
                window.now.owner = window.now.owner.take().or_else(|| origin.owner.clone());
                window.changed = true;
                Appended::New
            }
            SeqStatus::Duplicate => Appended::Repeat,
            SeqStatus::TooFar => Appended::Refused(BatchRefusal::TooFar),
        }
    }
}
