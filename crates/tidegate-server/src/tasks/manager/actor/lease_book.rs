use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;
use tidegate::capacity::{ExecutorId, Ticket};
use tidegate::ledger::SlotLease;
use tidegate::task::ExecutionKey;

/// Age at which a lease has arrived at its executor, or never will: connecting, sending and responding take less.
const SETTLED_AFTER: Duration = Duration::from_secs(15);

/// Slot leases of this manager's tasks, and recent fences of the slot ledger.
#[derive(Default)]
pub(super) struct LeaseBook {
    leases: BTreeMap<Ticket, SlotLease>,
    /// Latest fences by executor, with the time of observation; those younger than `SETTLED_AFTER`. A fence is the
    /// ledger's and not the executor's: an id that becomes another's may keep them.
    fences: HashMap<ExecutorId, VecDeque<(Duration, u64)>>,
}

// === impl LeaseBook ===

impl LeaseBook {
    pub(super) fn insert(&mut self, ticket: Ticket, lease: SlotLease) {
        self.leases.insert(ticket, lease);
    }

    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<SlotLease> {
        self.leases.remove(&ticket)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Ticket, &SlotLease)> {
        self.leases.iter().map(|(ticket, lease)| (*ticket, lease))
    }

    /// Attempts that have a lease.
    pub(super) fn holders(&self) -> impl Iterator<Item = &ExecutionKey> {
        self.leases.values().map(|lease| &lease.holder)
    }

    /// Notes the latest fence of the ledger.
    pub(super) fn observe_fence(&mut self, executor: ExecutorId, now: Duration, fence: u64) {
        self.fences.entry(executor).or_default().push_back((now, fence));
    }

    /// The newest fence of which every lease has settled by now; each is returned once.
    pub(super) fn settled_fence(&mut self, executor: ExecutorId, now: Duration) -> Option<u64> {
        let observed = self.fences.get_mut(&executor)?;
        let mut settled = None;
        while let Some((at, fence)) = observed.front().copied() {
            if at + SETTLED_AFTER > now {
                break;
            }
            settled = Some(fence);
            observed.pop_front();
        }
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::MessagePriority::Normal;
    use tidegate::ledger::{Acquired, SlotLedger, SlotRequest};

    fn granted(ledger: &mut SlotLedger, holder: &str, executor: &str, now: Duration) -> SlotLease {
        let request = SlotRequest {
            holder: holder.parse().unwrap(),
            priority: Normal,
            executors: vec![executor.into()],
            ttl: Duration::from_secs(600),
        };
        match ledger.acquire(&request, now).unwrap() {
            Acquired::Granted(lease) => lease,
            waiting => panic!("{waiting:?}"),
        }
    }

    /// The id of a worker that is gone becomes a new worker's, with the fences that were observed before.
    #[test]
    fn the_fences_of_a_reused_id_end_no_lease_on_its_way() {
        let (mut book, mut ledger) = (LeaseBook::default(), SlotLedger::new(0));
        let (reused, at) = (ExecutorId(0), Duration::from_secs);
        ledger.declare("old", 2, at(0)).unwrap();
        granted(&mut ledger, "a@1", "old", at(0));
        book.observe_fence(reused, at(1), ledger.latest_fence());
        // Of another manager: one before the observation, and two after it.
        ledger.declare("new", 3, at(0)).unwrap();
        let lost = granted(&mut ledger, "b@1", "new", at(2));
        book.observe_fence(reused, at(3), ledger.latest_fence());
        let runs = granted(&mut ledger, "c@1", "new", at(4));
        let on_its_way = granted(&mut ledger, "d@1", "new", at(17));
        // The new worker reports for the first time: nothing of b, which was sent 16 s ago and has not arrived.
        let settled = book.settled_fence(reused, at(18)).unwrap();
        assert_eq!(ledger.reconcile("new", std::slice::from_ref(&runs.holder), settled, at(18)), 1);
        assert!(!ledger.renew(&lost, Duration::from_secs(9), at(18)));
        assert!(ledger.renew(&runs, Duration::from_secs(9), at(18)));
        assert!(ledger.renew(&on_its_way, Duration::from_secs(9), at(18)));
        assert_eq!(ledger.held("old", at(18)), 1, "another executor's lease is none of it");
    }

    #[test]
    fn a_fence_settles_after_its_time_and_is_returned_once() {
        let (mut book, executor) = (LeaseBook::default(), ExecutorId(0));
        let at = |seconds| Duration::from_secs(seconds);
        book.observe_fence(executor, at(0), 7);
        book.observe_fence(executor, at(1), 9);
        book.observe_fence(executor, at(10), 12);
        assert_eq!(book.settled_fence(executor, at(14)), None);
        assert_eq!(book.settled_fence(executor, at(16)), Some(9), "the newest that has settled");
        assert_eq!(book.settled_fence(executor, at(16)), None);
        assert_eq!(book.settled_fence(ExecutorId(1), at(99)), None);
        assert_eq!(book.settled_fence(executor, at(25)), Some(12));
    }
}
