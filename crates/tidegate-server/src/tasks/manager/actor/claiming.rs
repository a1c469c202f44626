use super::actor::Actor;
use super::shared_queue::Drain;
use crate::tasks::manager::unix_time::now_ms;
use std::time::Duration;
use tidegate::capacity::{ExecutorRuntimes, SlotGroup, Ticket};
use tidegate::ledger::Ledger;
use tidegate::store::StoreError;
use tidegate::task::{TaskId, TaskStatus};
use tidegate::tasks::{Claim, ClaimGroup, Claimed, StoreHint, TaskRecord, TaskStore};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Longest wait for the answers of executors before a manager that shuts down hands over what they have.
const SENDING_MAX: Duration = Duration::from_secs(1);

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    /// Claims tasks for the slots that are free, if that may bring any.
    pub(super) fn claim(&mut self) {
        let now = self.queue.now();
        let Some(shared) = &mut self.shared else { return };
        let random = self.rng.next_u64();
        let Some(plan) = shared.claims.next(self.queue.fleet(), now, random) else { return };
        let groups: Vec<_> = plan.groups.iter().map(|group| self.named(group)).collect();
        if let Some(shared) = &mut self.shared {
            shared.begin(groups.clone());
        }
        let due_ms = plan.due.then(now_ms);
        let owner = self.settings.owner.clone();
        self.store.claim(Claim { owner, groups, due_ms, doubt: plan.doubt });
    }

    fn named(&self, group: &SlotGroup) -> ClaimGroup {
        let runtimes = match &group.serves {
            ExecutorRuntimes::All => None,
            ExecutorRuntimes::Only(ids) => Some(self.queue.runtime_names(ids)),
        };
        let links = group.slots.iter().filter_map(|id| self.executors.link(*id));
        ClaimGroup { runtimes, executors: links.map(|(name, _)| name.into()).collect() }
    }

    /// Takes in the store's answer to the claim under way.
    pub(super) fn claimed(&mut self, claimed: Result<Claimed, StoreError>) {
        let now = self.queue.now();
        let Some(shared) = &mut self.shared else { return };
        match claimed {
            Ok(Claimed { tasks, before }) => {
                let counts = shared.counts(&tasks);
                shared.claims.answered(&counts, now);
                for record in before {
                    // Not to be started: it may have been followed since the store was read.
                    if self.tasks.find(&record.id).is_none() {
                        self.give_back(record);
                    }
                }
                tasks.into_iter().for_each(|record| self.begin_claimed(record));
            }
            Err(error) => {
                tracing::warn!(%error, "can't claim tasks");
                shared.claims.failed(now);
            }
        }
    }

    /// Starts a task that was claimed.
    fn begin_claimed(&mut self, record: TaskRecord) {
        if let Some(known) = self.tasks.find(&record.id) {
            let newer = record.state.version > known.record().state.version;
            if newer && let Some(shared) = &mut self.shared {
                shared.keep(record);
            }
            return;
        }
        let assignment = record.state.assignment.as_ref();
        let executor = assignment.and_then(|assigned| self.find_executor(&assigned.executor));
        let Some(executor) = executor.filter(|_| !self.draining) else {
            return self.give_back(record);
        };
        let Some(ticket) = self.tasks.insert(record.clone()) else { return };
        self.queue.claimed(ticket, executor, &record);
        match self.begin_attempt(ticket, executor) {
            Some(attempt) => {
                self.meters.sent();
                tokio::spawn(attempt.run_claimed());
            }
            None => {
                self.forget(ticket);
                self.give_back(record);
            }
        }
    }

    /// Gives back a task that no executor has got from this manager.
    pub(super) fn give_back(&mut self, record: TaskRecord) {
        if let Some(shared) = &mut self.shared {
            shared.giving_back += 1;
            self.store.give_back(record);
        }
    }

    /// A claim was given back.
    pub(super) fn given_back(&mut self) {
        if let Some(shared) = &mut self.shared {
            shared.giving_back = shared.giving_back.saturating_sub(1);
        }
    }

    /// Leaves a task that waits again to whoever claims it; it is in the store as such.
    pub(super) fn leave_to_others(&mut self, ticket: Ticket) {
        let now = self.queue.now();
        let (entry, shared) = (self.tasks.get(ticket), self.shared.as_mut());
        let (Some(entry), Some(shared)) = (entry, shared) else { return };
        match entry.record().state.not_before_ms {
            Some(at_ms) => {
                let pause = Duration::from_millis(at_ms.saturating_sub(now_ms()));
                shared.claims.due_at(now.saturating_add(pause));
            }
            None => shared.claims.hint(),
        }
        let cancel = entry.must_cancel();
        let Some(record) = self.forget(ticket) else { return };
        if cancel {
            // By whoever has it by now.
            let (reply, _unused) = oneshot::channel();
            self.store.request_cancel(record.id.clone(), reply);
        }
        self.begin_kept(&record.id);
    }

    /// Starts a task that was claimed again before its last attempt here was over.
    pub(super) fn begin_kept(&mut self, id: &TaskId) {
        let kept = self.shared.as_mut().and_then(|shared| shared.kept(id));
        if let Some(record) = kept {
            self.begin_claimed(record);
        }
    }

    fn forget(&mut self, ticket: Ticket) -> Option<TaskRecord> {
        let withdrawn = self.queue.withdraw(ticket);
        self.obey_all(withdrawn);
        self.tasks.remove(ticket)
    }

    /// Takes in news of other managers.
    pub(super) fn hinted(&mut self, hint: StoreHint) {
        if let Some(shared) = &mut self.shared {
            if hint.queued {
                shared.claims.hint();
            }
            if hint.handed_over {
                self.take_over();
            }
        }
    }

    /// Takes over what other managers have handed over at executors that this one knows too.
    pub(super) fn take_over(&self) {
        let executors = self.executors.remote_names();
        if self.shared.is_some() && !self.draining && !executors.is_empty() {
            self.store.take_over(self.settings.owner.clone(), executors);
        }
    }

    /// Hands over what runs elsewhere, once nothing is on its way any more.
    pub(super) fn drain_shared(&mut self) {
        let sending = self.is_sending();
        let Some(shared) = &mut self.shared else { return };
        let since = match shared.drain {
            Drain::Serving => Instant::now(),
            Drain::Since(since) => since,
            Drain::HandingOver | Drain::HandedOver => return,
        };
        shared.drain = Drain::Since(since);
        let pending = shared.claims.is_under_way() || shared.giving_back > 0;
        if pending || (sending && since.elapsed() < SENDING_MAX) {
            return;
        }
        shared.drain = Drain::HandingOver;
        let executors = self.executors.remote_names();
        let at = |executor: &str| executors.iter().any(|name| name == executor);
        let handed: Vec<_> = self.tasks.tickets_at(at).collect();
        for ticket in handed {
            // This ends its attempt, which must not take the end away from who follows it next.
            self.forget(ticket);
        }
        self.store.hand_over(self.settings.owner.clone(), executors);
    }

    /// Notes that what runs elsewhere is handed over, or stays with this manager until its lease is over.
    pub(super) fn handed_over(&mut self) {
        if let Some(shared) = &mut self.shared {
            shared.drain = Drain::HandedOver;
        }
    }

    /// True until the others have what they can run, and what they can follow.
    pub(super) fn is_handing_over(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.drain != Drain::HandedOver)
    }

    /// True while an executor has not answered to an attempt.
    fn is_sending(&self) -> bool {
        let is_sent = |status| status == TaskStatus::Queued;
        let mut entries = self.tasks.iter();
        entries.any(|entry| entry.executor().is_some() && is_sent(entry.record().state.status))
    }
}
