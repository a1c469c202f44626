use super::actor::Actor;
use super::attempt::Attempt;
use super::event::Event;
use super::link::Offered;
use crate::worker::ReserveBody;
use std::sync::Arc;
use tidegate::capacity::{Answer, ExecutorId, Order, Ticket};
use tidegate::ledger::Ledger;
use tidegate::task::ExecutionKey;
use tidegate::tasks::TaskStore;
use tokio::sync::watch;

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    /// Does what the dispatcher says.
    pub fn place(&mut self) {
        if self.draining {
            return;
        }
        let now = self.now();
        let chance = &self.chance;
        for order in self.dispatcher.orders(now, &mut || chance.next()) {
            self.obey(order);
        }
    }

    pub fn obey(&mut self, order: Order) {
        match order {
            Order::Execute { ticket, executor } => self.send(ticket, executor),
            Order::Reserve { ticket, executor } => self.reserve(ticket, executor),
            Order::Lease { ticket, executors } => self.lease(ticket, &executors),
            Order::Unlease { ticket } => self.unlease(ticket),
        }
    }

    fn send(&mut self, ticket: Ticket, executor: ExecutorId) {
        let Some(attempt) = self.attempt(ticket, executor) else { return };
        self.meters.sent();
        tokio::spawn(attempt.drive());
    }

    /// What drives the task from now on. Nothing else changes its state meanwhile.
    pub fn attempt(&mut self, ticket: Ticket, executor: ExecutorId) -> Option<Attempt<S>> {
        let place = self.executors.get(executor.0 as usize)?;
        let (name, link) = (place.name.clone(), Arc::clone(&place.link));
        let entry = self.book.get_mut(ticket)?;
        let (cancel, cancelled) = watch::channel(entry.record.state.cancel_asked);
        entry.driven = Some(cancel);
        entry.at = Some(name.clone());
        entry.output.clear();
        Some(Attempt {
            ticket,
            record: entry.record.clone(),
            executor: name,
            link,
            store: Arc::clone(&self.store),
            events: self.events.clone(),
            cancel: cancelled,
            lease: self.terms.lease,
            output_bytes_max: self.terms.output_bytes_max,
            shared_store: self.terms.shared_store,
            reservation: entry.reservation.take(),
            kept: entry.record.state.version,
            unsure: None,
        })
    }

    fn reserve(&mut self, ticket: Ticket, executor: ExecutorId) {
        let Some(entry) = self.book.get(ticket) else { return };
        let Some(place) = self.executors.get(executor.0 as usize) else { return };
        let body = ReserveBody {
            eval_id: entry.record.id.as_str().to_owned(),
            ttl: self.terms.lease.as_secs_f64(),
            attempt: entry.record.state.attempt + 1,
        };
        let key = entry.record.id.attempt(body.attempt);
        let (link, events) = (Arc::clone(&place.link), self.events.clone());
        tokio::spawn(async move {
            let (answer, reservation) = match link.reserve(&body).await {
                Offered::Taken(reservation) => (Answer::Accepted, Some(reservation)),
                Offered::Full { retry_after } => (Answer::Full { retry_after }, None),
                Offered::Unreachable => (Answer::Unreachable, None),
                // What may have been reserved runs out by itself.
                Offered::Gone | Offered::Never(_) | Offered::Unknown(_) => {
                    (Answer::Unreachable, None)
                }
            };
            let reserved = Event::Reserved { ticket, answer, reservation, executor, key };
            let _ = events.send(reserved).await;
        });
    }

    /// Gives a reservation back that nobody will use.
    pub fn unreserve(&self, executor: ExecutorId, key: ExecutionKey) {
        let Some(place) = self.executors.get(executor.0 as usize) else { return };
        let link = Arc::clone(&place.link);
        tokio::spawn(async move {
            link.cancel(&key).await;
        });
    }
}
