use crate::tasks::execution::ReserveBody;
use crate::tasks::manager::event::Event;
use crate::tasks::manager::link::{ExecutorResponse, Link};
use std::sync::Arc;
use tidegate::capacity::{ExecutorAnswer, ExecutorId, Ticket};
use tidegate::task::ExecutionKey;
use tokio::sync::mpsc;

/// Background calls to executors.
pub struct ExecutorCalls {
    events: mpsc::Sender<Event>,
}

// === impl ExecutorCalls ===

impl ExecutorCalls {
    /// Calls that report to `events`.
    pub fn new(events: mpsc::Sender<Event>) -> Self {
        Self { events }
    }

    /// Asks an executor for its capacity.
    pub fn probe(&self, executor: ExecutorId, link: Arc<Link>, changes: u64) {
        let events = self.events.clone();
        tokio::spawn(async move {
            let report = link.capacity().await.map(Box::new);
            let _ = events.send(Event::Probed { executor, report, changes }).await;
        });
    }

    /// Reserves a slot for an attempt.
    pub fn reserve(
        &self,
        ticket: Ticket,
        executor: ExecutorId,
        link: Arc<Link>,
        key: ExecutionKey,
        body: ReserveBody,
    ) {
        let events = self.events.clone();
        tokio::spawn(async move {
            let (answer, reservation) = match link.reserve(&body).await {
                ExecutorResponse::Accepted(reservation) => {
                    (ExecutorAnswer::Accepted, Some(reservation))
                }
                ExecutorResponse::Full { retry_after } => {
                    (ExecutorAnswer::Full { retry_after }, None)
                }
                // A reservation that may have been granted expires by itself.
                ExecutorResponse::Unreachable
                | ExecutorResponse::Gone
                | ExecutorResponse::Rejected(_)
                | ExecutorResponse::Unknown(_) => (ExecutorAnswer::Unreachable, None),
            };
            let event = Event::ReservationAnswered { ticket, answer, reservation, executor, key };
            let _ = events.send(event).await;
        });
    }

    /// Releases a reservation that no attempt will use.
    pub fn release_reservation(&self, link: Arc<Link>, key: ExecutionKey) {
        tokio::spawn(async move {
            link.cancel(&key).await;
        });
    }
}
