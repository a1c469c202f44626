use super::store_calls::StoreCalls;
use crate::tasks::manager::event::Event;
use crate::tasks::manager::persistence::persist;
use crate::tasks::manager::unix_time::now_ms;
use std::sync::Arc;
use std::time::Duration;
use tidegate::task::TaskEvent;
use tidegate::tasks::{Claim, Durability, TaskRecord, TaskStore};
use tokio::time::timeout;

/// Tasks taken over at once.
const TAKE_OVER_PAGE: usize = 100;
/// Tasks of a priority that are counted for the gauges.
const DEPTH_MAX: u64 = 10_000;
/// Longest wait for the store when running tasks are handed over: without an answer they are adopted later.
const HAND_OVER_MAX: Duration = Duration::from_secs(2);

// === impl StoreCalls ===

impl<S: TaskStore> StoreCalls<S> {
    /// Claims queued tasks.
    pub fn claim(&self, claim: Claim) {
        let (store, events) = (Arc::clone(self.store()), self.events().clone());
        tokio::spawn(async move {
            let claimed = store.claim(claim).await;
            let _ = events.send(Event::Claimed(claimed)).await;
        });
    }

    /// Gives back a task that was claimed, or adopted in the queue, and that no executor has.
    pub fn give_back(&self, record: TaskRecord) {
        let (store, events) = (Arc::clone(self.store()), self.events().clone());
        tokio::spawn(async move {
            let (before, attempt) = (&record.state, record.state.attempt);
            let refused = before.after(&TaskEvent::Refused { attempt }, &record.spec, now_ms());
            let mut state = refused.unwrap_or_else(|_| before.clone());
            state.version = before.version + 1;
            state.release();
            // Whoever was faster has it now.
            persist(&*store, &record.id, &state, None, Durability::Power, None).await;
            let _ = events.send(Event::GivenBack).await;
        });
    }

    /// Hands over the tasks that these executors have.
    pub fn hand_over(&self, owner: String, executors: Vec<String>) {
        let (store, events) = (Arc::clone(self.store()), self.events().clone());
        tokio::spawn(async move {
            let handed = timeout(HAND_OVER_MAX, store.hand_over(&owner, &executors)).await;
            match handed {
                Ok(Ok(tasks)) if tasks > 0 => tracing::info!(tasks, "running tasks handed over"),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "can't hand over running tasks"),
                Err(_) => tracing::warn!("can't hand over running tasks: no answer of the store"),
            }
            let _ = events.send(Event::HandedOver).await;
        });
    }

    /// Takes over tasks at these executors that another manager has handed over.
    pub fn take_over(&self, owner: String, executors: Vec<String>) {
        let (store, events) = (Arc::clone(self.store()), self.events().clone());
        tokio::spawn(async move {
            loop {
                let page = match store.take_over(&owner, &executors, TAKE_OVER_PAGE).await {
                    Ok(page) if page.is_empty() => return,
                    Ok(page) => page,
                    Err(error) => {
                        return tracing::warn!(%error, "task store: can't take over tasks");
                    }
                };
                tracing::info!(tasks = page.len(), "tasks taken over");
                if events.send(Event::Adopted(page)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Reports news of other managers as events.
    pub fn watch_hints(&self) {
        let (store, events) = (Arc::clone(self.store()), self.events().clone());
        tokio::spawn(async move {
            loop {
                let hint = tokio::select! {
                    hint = store.hint() => hint,
                    () = events.closed() => return,
                };
                if events.send(Event::Hinted(hint)).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Reads how many tasks wait, and how many are not over.
    pub fn read_queue(&self) {
        let (store, events) = (Arc::clone(self.store()), self.events().clone());
        tokio::spawn(async move {
            // Without an answer the last one stays.
            let (Ok(depth), Ok(counts)) =
                (store.queue_depth(DEPTH_MAX).await, store.counts().await)
            else {
                return;
            };
            let live = counts.iter().take(3).sum();
            let _ = events.send(Event::QueueRead { depth, live }).await;
        });
    }

    /// Adopts queued tasks that belong to nobody, for a manager that keeps a queue of its own.
    pub fn adopt_queued(&self, owner: String, room: usize) {
        let (store, events) = (Arc::clone(self.store()), self.events().clone());
        tokio::spawn(async move {
            let mut left = room;
            while left > 0 {
                let page = match store.adopt_queued(&owner, left).await {
                    Ok(page) if page.is_empty() => return,
                    Ok(page) => page,
                    Err(error) => return tracing::warn!(%error, "task store: can't adopt tasks"),
                };
                left = left.saturating_sub(page.len());
                if events.send(Event::Adopted(page)).await.is_err() {
                    return;
                }
            }
        });
    }
}
