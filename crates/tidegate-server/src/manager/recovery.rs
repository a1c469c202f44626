use super::actor::Actor;
use super::attempt::{Attempt, now_ms};
use super::event::Event;
use super::keeping::{Step, keep};
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::{ExecutorId, Place, Ticket};
use tidegate::ledger::Ledger;
use tidegate::task::{TaskEvent, TaskId};
use tidegate::tasks::{Durability, TaskStore};
use tokio::time::sleep;

/// Before a task is looked for that slipped away; doubles while the store can't be read.
const LOOK_AGAIN_FIRST: Duration = Duration::from_millis(500);
const LOOK_AGAIN_MAX: Duration = Duration::from_secs(30);
/// Tasks that are taken over at once.
const PAGE: usize = 500;

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    /// Takes over what an earlier life of this manager, or a manager that is gone, has left.
    pub fn adopt(&self) {
        let room = self.terms.tasks_max.saturating_sub(self.book.len() + self.arriving.0);
        let (store, events) = (Arc::clone(&self.store), self.events.clone());
        let (owner, ttl) = (self.terms.owner.clone(), self.beat_ttl());
        tokio::spawn(async move {
            if let Err(error) = store.beat(&owner, ttl).await {
                return tracing::warn!(%error, "the store does not hear that this manager lives");
            }
            let mut left = room;
            while left > 0 {
                let page = match store.adopt(&owner, PAGE.min(left)).await {
                    Ok(page) => page,
                    Err(error) => {
                        return tracing::warn!(%error, "left tasks can't be taken over yet");
                    }
                };
                if page.is_empty() {
                    return;
                }
                tracing::info!(tasks = page.len(), "tasks that were left are taken over");
                left = left.saturating_sub(page.len());
                if events.send(Event::Adopted(page)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// How long this manager counts as alive after it has said so.
    pub fn beat_ttl(&self) -> Duration {
        self.terms.lease
    }

    /// Follows what was sent to an executor before.
    pub fn resume(&mut self, ticket: Ticket, executor: ExecutorId) {
        let Some(entry) = self.book.get(ticket) else { return };
        let priority = entry.record.spec.priority;
        let runtime = self.runtimes.id(&entry.record.spec.runtime);
        self.dispatcher.resume(ticket, executor, Place { priority, seq: 0 }, runtime);
        if let Some(attempt) = self.attempt(ticket, executor) {
            self.regain(ticket, &attempt.executor);
            tokio::spawn(Attempt::resume(attempt));
        }
    }

    /// What was sent to an executor that is not configured any more is lost when its lease is over.
    pub fn give_up(&mut self, ticket: Ticket, executor: &str) {
        let Some(entry) = self.book.get(ticket) else { return };
        let (record, lease) = (entry.record.clone(), self.terms.lease);
        tracing::warn!(task = %record.id, executor, "its executor is not known here; it is tried again");
        let (store, events) = (Arc::clone(&self.store), self.events.clone());
        tokio::spawn(async move {
            sleep(lease).await;
            let event = TaskEvent::Lost { attempt: record.state.attempt };
            let state = match record.state.after(&event, &record.spec, now_ms()) {
                Ok(state) => state,
                Err(_) => return,
            };
            let step = keep(&*store, &record.id, &state, None, Durability::Power, None).await;
            let state = matches!(step, Step::Kept).then(|| Box::new(state));
            let _ = events.send(Event::Over { ticket, state }).await;
        });
    }

    /// A task slipped away: somebody else changed it. It is taken up again if it is still this manager's.
    pub fn look_again(&self, id: TaskId) {
        let (store, events) = (Arc::clone(&self.store), self.events.clone());
        let owner = self.terms.owner.clone();
        tokio::spawn(async move {
            let mut pause = LOOK_AGAIN_FIRST;
            while !events.is_closed() {
                // Not at once: whoever changed it may be about to change it again.
                sleep(pause).await;
                pause = (pause * 2).min(LOOK_AGAIN_MAX);
                match store.get(&id).await {
                    Ok(Some(record)) => {
                        let state = &record.state;
                        if *state.owner == *owner && !state.status.is_over() {
                            let _ = events.send(Event::Adopted(vec![record])).await;
                        }
                        return;
                    }
                    Ok(None) => return,
                    Err(error) => {
                        tracing::warn!(task = %id, %error, "a task can't be looked for yet");
                    }
                }
            }
        });
    }
}
