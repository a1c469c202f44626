use crate::agenda::Time;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_core::admission::MessagePriority::Normal;
use tidegate_core::capacity::{Acquired, ExecutorId, SlotLease, SlotLedger, SlotRequest, Ticket};
use tidegate_core::task::ExecutionKey;

/// Well below the time for which an executor is known that is not declared again.
const DECLARE_EVERY: Duration = Duration::from_secs(600);

/// The ledger that ships, with one slot for each executor, and who waits in it.
#[derive(Debug)]
pub(super) struct SimLedger {
    core: SlotLedger,
    names: Vec<Box<str>>,
    line: VecDeque<(Ticket, ExecutionKey)>,
    declared: Option<Duration>,
    ttl: Duration,
}

// === impl SimLedger ===

impl SimLedger {
    pub(super) fn new(executors: u32, ttl: Duration) -> Self {
        let names = (0..executors).map(|number| number.to_string().into()).collect();
        let core = SlotLedger::new(0);
        Self { core, names, line: VecDeque::new(), declared: None, ttl }
    }

    /// As managers do whenever they have heard of an executor.
    fn declare(&mut self, now: Duration) {
        if self.declared.is_some_and(|declared| now < declared + DECLARE_EVERY) {
            return;
        }
        self.declared = Some(now);
        for name in &self.names {
            // One slot under a name of digits is never refused.
            let _ = self.core.declare(name, 1, now);
        }
    }

    pub(super) fn lease(
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
                self.line.retain(|(_, waiting)| waiting != holder);
                Some(lease)
            }
            Ok(Acquired::Waiting { .. }) => {
                if !self.line.iter().any(|(_, waiting)| waiting == holder) {
                    self.line.push_back((ticket, holder.clone()));
                }
                None
            }
            Err(_) => None,
        }
    }

    /// Asks for a slot that should be held already, and for no place in the line.
    pub(super) fn regain(
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

    pub(super) fn renew(&mut self, lease: &SlotLease, now: Time) -> bool {
        self.core.renew(lease, self.ttl, Duration::from_nanos(now))
    }

    /// A slot comes back. With who is first in the line.
    pub(super) fn release(&mut self, lease: &SlotLease, now: Time) -> Option<Ticket> {
        self.core.release(lease, Duration::from_nanos(now));
        self.line.front().map(|(ticket, _)| *ticket)
    }

    /// A place in the line comes back, or a slot of which nobody knows. With who is first in the line.
    pub(super) fn withdraw(&mut self, holder: &ExecutionKey, now: Time) -> Option<Ticket> {
        self.core.withdraw(holder, Duration::from_nanos(now));
        self.line.retain(|(_, waiting)| waiting != holder);
        self.line.front().map(|(ticket, _)| *ticket)
    }

    /// Their manager is gone, and nobody can be told of their turn; their places end by themselves.
    pub(super) fn forget_line(&mut self, is_gone: impl Fn(Ticket) -> bool) {
        self.line.retain(|(ticket, _)| !is_gone(*ticket));
    }

    pub(super) fn executor(lease: &SlotLease) -> Option<ExecutorId> {
        lease.executor.parse().ok().map(ExecutorId)
    }
}
