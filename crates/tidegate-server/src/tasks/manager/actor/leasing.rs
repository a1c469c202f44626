use super::actor::Actor;
use tidegate::capacity::{ExecutorId, LeaseAnswer, Placement, Ticket};
use tidegate::ledger::{Acquired, Ledger, SlotLease, SlotRequest};
use tidegate::task::ExecutionKey;
use tidegate::tasks::TaskStore;

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    fn uses_ledger(&self) -> bool {
        self.settings.placement == Placement::Semaphore
    }

    /// Reports changes of the slot ledger as events, if it is used.
    pub(super) fn watch_ledger(&self) {
        if self.uses_ledger() {
            self.ledger.watch();
        }
    }

    /// Requests a slot on one of the executors for the task's next attempt.
    pub(super) fn lease(&self, ticket: Ticket, executors: &[ExecutorId]) {
        let Some(holder) = self.next_attempt(ticket) else { return };
        let names = executors.iter().filter_map(|id| self.executors.link(*id));
        let names = names.map(|(name, _)| name).collect();
        if let Some(request) = self.slot_request(ticket, holder, names) {
            self.ledger.acquire(ticket, request);
        }
    }

    /// Takes in the slot ledger's answer to a request.
    pub(super) fn lease_answered(&mut self, ticket: Ticket, answer: Option<Acquired>) {
        let answer = match answer {
            // By its name: the id that the executor had at the request may be another's by now.
            Some(Acquired::Granted(lease)) => match self.executors.find(&lease.executor) {
                Some(executor) => {
                    self.lease_regained(ticket, lease);
                    LeaseAnswer::Granted(executor)
                }
                // Granted to an earlier process, or on a worker that has left.
                None => {
                    self.ledger.release(lease);
                    LeaseAnswer::Unavailable
                }
            },
            Some(Acquired::Waiting { .. }) => LeaseAnswer::Waiting,
            None => LeaseAnswer::Unavailable,
        };
        let order = self.queue.leased(ticket, answer);
        self.obey_all(order);
    }

    /// Releases the lease of a task that does not start, or withdraws its request.
    pub(super) fn unlease(&mut self, ticket: Ticket) {
        if let Some(holder) = self.next_attempt(ticket) {
            self.ledger.give_back(self.leases.remove(ticket), holder);
        }
    }

    /// Takes in a lease; one of a task that is gone is released.
    pub(super) fn lease_regained(&mut self, ticket: Ticket, lease: SlotLease) {
        match self.tasks.get(ticket) {
            Some(_) => self.leases.insert(ticket, lease),
            None => self.ledger.release(lease),
        }
    }

    /// Releases the lease of an attempt that is over.
    pub(super) fn release_lease(&mut self, ticket: Ticket) {
        if let Some(lease) = self.leases.remove(ticket) {
            self.ledger.release(lease);
        }
    }

    /// Requests the slot of an attempt that an earlier process had sent.
    pub(super) fn regain_lease(&self, ticket: Ticket, executor: &str) {
        if !self.uses_ledger() {
            return;
        }
        let holder =
            self.tasks.record(ticket).map(|record| record.id.attempt(record.state.attempt));
        let request =
            holder.and_then(|holder| self.slot_request(ticket, holder, vec![executor.into()]));
        if let Some(request) = request {
            self.ledger.regain(ticket, request);
        }
    }

    /// Renews the leases and the requests that wait in the slot ledger.
    pub(super) fn renew_leases(&mut self) {
        if !self.uses_ledger() {
            return;
        }
        for (ticket, lease) in self.leases.iter() {
            let (holder, executors) = (lease.holder.clone(), vec![lease.executor.clone()]);
            if let Some(request) = self.slot_request(ticket, holder, executors) {
                self.ledger.renew(ticket, lease.clone(), request);
            }
        }
        let orders = self.queue.ledger_changed();
        self.obey_all(orders);
    }

    /// Declares an executor's slots to the slot ledger, with the executions that it really runs.
    pub(super) fn declare_slots(&mut self, id: ExecutorId, slots: u32) {
        if !self.uses_ledger() {
            return;
        }
        let Some((name, _)) = self.executors.link(id) else { return };
        let reported = self.executors.executions(id);
        let parsed = reported.unwrap_or_default().iter().filter_map(|text| text.parse().ok());
        // Attempts on their way to an executor hold their slots too.
        let running: Vec<ExecutionKey> = parsed.chain(self.leases.holders().cloned()).collect();
        // A fence is returned once: not to a report without executions, as a join has.
        let settled = reported.and_then(|_| self.leases.settled_fence(id, self.queue.now()));
        self.ledger.declare(id, name, slots, running, settled);
    }

    fn next_attempt(&self, ticket: Ticket) -> Option<ExecutionKey> {
        self.tasks.record(ticket).map(|record| record.id.attempt(record.state.attempt + 1))
    }

    fn slot_request(
        &self,
        ticket: Ticket,
        holder: ExecutionKey,
        executors: Vec<Box<str>>,
    ) -> Option<SlotRequest> {
        let priority = self.tasks.record(ticket)?.spec.priority;
        Some(SlotRequest { holder, priority, executors, ttl: self.settings.lease })
    }
}
