use crate::agenda::Time;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_core::admission::MessagePriority::Normal;
use tidegate_core::capacity::{Acquired, ExecutorId, SlotLease, SlotLedger, SlotRequest, Ticket};
use tidegate_core::task::ExecutionKey;

/// The interval of declarations, well below the time after which an executor is forgotten.
const DECLARE_EVERY: Duration = Duration::from_secs(600);

/// The slot ledger that ships, with one slot for each executor, and its queue.
#[derive(Debug)]
pub struct SimLedger {
    core: SlotLedger,
    names: Vec<Box<str>>,
    queue: VecDeque<(Ticket, ExecutionKey)>,
    declared: Option<Duration>,
    ttl: Duration,
}

// === impl SimLedger ===

impl SimLedger {
    pub fn new(executors: u32, ttl: Duration) -> Self {
        let names = (0..executors).map(|number| number.to_string().into()).collect();
        let core = SlotLedger::new(0);
        Self { core, names, queue: VecDeque::new(), declared: None, ttl }
    }

    /// Declares the executors, as managers do.
    fn declare(&mut self, now: Duration) {
        if self.declared.is_some_and(|declared| now < declared + DECLARE_EVERY) {
            return;
        }
        self.declared = Some(now);
        for name in &self.names {
            // Executor slot under a name of digits is never refused.
            let _ = self.core.declare(name, 1, now);
        }
    }

    pub fn lease(
        &mut self,
        ticket: Ticket,
        holder: &ExecutionKey,
        wanted: &[ExecutorId],
        now: Time,
    ) -> Option<SlotLease> {
        let now = Duration::from_nanos(now);
        self.declare(now);
        let names = wanted.iter().filter_map(|id| self.names.get(id.0 as usize).cloned());
        let request = SlotRequest {
            holder: holder.clone(),
            priority: Normal,
            executors: names.collect(),
            ttl: self.ttl,
        };
        match self.core.acquire(&request, now) {
            Ok(Acquired::Granted(lease)) => {
                self.queue.retain(|(_, waiting)| waiting != holder);
                Some(lease)
            }
            Ok(Acquired::Waiting { .. }) => {
                if !self.queue.iter().any(|(_, waiting)| waiting == holder) {
                    self.queue.push_back((ticket, holder.clone()));
                }
                None
            }
            Err(_) => None,
        }
    }

    /// Acquires a slot that should already be held, without queueing for it.
    pub fn regain(
        &mut self,
        ticket: Ticket,
        holder: &ExecutionKey,
        at: ExecutorId,
        now: Time,
    ) -> Option<SlotLease> {
        let lease = self.lease(ticket, holder, &[at], now);
        if lease.is_none() {
            self.withdraw(holder, now);
        }
        lease
    }

    pub fn renew(&mut self, lease: &SlotLease, now: Time) -> bool {
        self.core.renew(lease, self.ttl, Duration::from_nanos(now))
    }

    /// Releases a slot, and returns the first task of the queue.
    pub fn release(&mut self, lease: &SlotLease, now: Time) -> Option<Ticket> {
        self.core.release(lease, Duration::from_nanos(now));
        self.queue.front().map(|(ticket, _)| *ticket)
    }

    /// Withdraws a queued request or an unknown lease, and returns the first task of the queue.
    pub fn withdraw(&mut self, holder: &ExecutionKey, now: Time) -> Option<Ticket> {
        self.core.withdraw(holder, Duration::from_nanos(now));
        self.queue.retain(|(_, waiting)| waiting != holder);
        self.queue.front().map(|(ticket, _)| *ticket)
    }

    /// Removes the queued tasks of a manager that is gone; their leases expire.
    pub fn forget_queue(&mut self, is_gone: impl Fn(Ticket) -> bool) {
        self.queue.retain(|(ticket, _)| !is_gone(*ticket));
    }

    pub fn executor(lease: &SlotLease) -> Option<ExecutorId> {
        lease.executor.parse().ok().map(ExecutorId)
    }
}
