use super::Decision;
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::mpsc;

/// Each of them is told of every request: more than these would be load of its own.
pub const RECORDERS_MAX: usize = 4;

/// What a recorder may be behind: over a second of what a gateway can decide, and about 5 MB.
const BUFFER: usize = 64 * 1024;

/// Where decisions are told, and to whom.
#[derive(Debug, Default)]
pub struct Journal {
    /// Whether anybody records. All that a request looks at when nobody does.
    is_on: AtomicBool,
    taps: ArcSwap<Vec<Arc<Tap>>>,
    next_id: AtomicU64,
}

/// One recorder's end of the buffer, on the side that fills it.
#[derive(Debug)]
struct Tap {
    id: u64,
    decisions: mpsc::Sender<Decision>,
    lost: Arc<AtomicU64>,
}

/// The other end. Who drops it records no longer.
#[derive(Debug)]
pub(super) struct Tapped {
    id: u64,
    journal: Arc<Journal>,
    /// What was told and not yet taken.
    pub(super) decisions: mpsc::Receiver<Decision>,
    /// How many there was no room for.
    pub(super) lost: Arc<AtomicU64>,
}

/// As many record as may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany;

// === impl Journal ===

impl Journal {
    /// Whether anybody records.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Tells all who record. Never waits: who has no room for it loses it.
    pub fn tell(&self, decision: &Decision) {
        for tap in self.taps.load().iter() {
            if tap.decisions.try_send(decision.clone()).is_err() {
                tap.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Begins to record.
    pub(super) fn tap(self: &Arc<Self>) -> Result<Tapped, TooMany> {
        let (sender, decisions) = mpsc::channel(BUFFER);
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let lost = Arc::new(AtomicU64::new(0));
        let tap = Arc::new(Tap { id, decisions: sender, lost: Arc::clone(&lost) });
        let before = self.taps.rcu(|taps| {
            let mut taps = taps.to_vec();
            if taps.len() < RECORDERS_MAX {
                taps.push(Arc::clone(&tap));
            }
            taps
        });
        if before.len() >= RECORDERS_MAX {
            return Err(TooMany);
        }
        self.is_on.store(true, Ordering::Relaxed);
        Ok(Tapped { id, journal: Arc::clone(self), decisions, lost })
    }

    /// Tells this recorder nothing more. What was told it can still take.
    pub(super) fn retire(&self, id: u64) {
        self.taps.rcu(|taps| taps.iter().filter(|tap| tap.id != id).cloned().collect::<Vec<_>>());
        self.is_on.store(!self.taps.load().is_empty(), Ordering::Relaxed);
        // Whoever came between the two has switched on what was then switched off: look once more.
        if !self.taps.load().is_empty() {
            self.is_on.store(true, Ordering::Relaxed);
        }
    }
}

// === impl Tapped ===

impl Tapped {
    pub(super) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Tapped {
    fn drop(&mut self) {
        self.journal.retire(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Verdict;
    use std::time::Instant;
    use tidegate::MessagePriority;

    fn decision() -> Decision {
        Decision {
            decided: Instant::now(),
            took: None,
            priority: MessagePriority::Low,
            verdict: Verdict::Admitted,
            client: None,
        }
    }

    #[test]
    fn it_is_on_while_somebody_records() {
        let journal = Arc::new(Journal::default());
        assert!(!journal.is_on());
        let (first, second) = (journal.tap().unwrap(), journal.tap().unwrap());
        drop(first);
        assert!(journal.is_on());
        drop(second);
        assert!(!journal.is_on());
    }

    #[test]
    fn there_are_only_so_many_and_a_place_returns() {
        let journal = Arc::new(Journal::default());
        let mut taps: Vec<_> = (0..RECORDERS_MAX).map(|_| journal.tap().unwrap()).collect();
        assert_eq!(journal.tap().unwrap_err(), TooMany);
        taps.pop();
        assert!(journal.tap().is_ok());
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_and_stops_nobody() {
        let journal = Arc::new(Journal::default());
        let (mut slow, mut fast) = (journal.tap().unwrap(), journal.tap().unwrap());
        for _ in 0..BUFFER + 10 {
            journal.tell(&decision());
            assert!(fast.decisions.try_recv().is_ok());
        }
        assert_eq!(slow.lost.load(Ordering::Relaxed), 10);
        assert_eq!(fast.lost.load(Ordering::Relaxed), 0);
        let mut taken = 0;
        while slow.decisions.try_recv().is_ok() {
            taken += 1;
        }
        assert_eq!(taken, BUFFER);
    }

    #[test]
    fn who_is_retired_takes_what_was_told_and_sees_the_end() {
        let journal = Arc::new(Journal::default());
        let mut tapped = journal.tap().unwrap();
        journal.tell(&decision());
        journal.retire(tapped.id());
        journal.tell(&decision());
        assert!(tapped.decisions.try_recv().is_ok());
        assert_eq!(
            tapped.decisions.try_recv().unwrap_err(),
            mpsc::error::TryRecvError::Disconnected
        );
    }
}
