use super::group::Group;
use super::request::Request;
use super::transaction::{TransactionError, Work};
use crate::storage::StoreError;
use crate::storage::postgres::{Link, Settings};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Longest wait for an answer of the database.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(40);

/// Number of tries of a transaction that conflicts with another.
const TRIES: usize = 5;

/// The writer, on a connection of its own.
pub(super) struct Writer {
    pub(super) link: Link,
    pub(super) settings: Arc<Settings>,
    /// Which opening of the store this is.
    pub(super) life: i64,
}

// === impl Writer ===

impl Writer {
    /// Handles requests until all senders are gone.
    pub(super) async fn serve(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut waiting = None;
        loop {
            let request = match waiting.take() {
                Some(request) => Some(request),
                None => requests.recv().await,
            };
            match request {
                None => return,
                Some(Request::Adopt(adopt, reply)) => {
                    let _ = reply.send(self.transact(&adopt).await);
                }
                Some(Request::Claim(claim, reply)) => {
                    let _ = reply.send(self.transact(&claim).await);
                }
                Some(Request::HandOver(hand_over, reply)) => {
                    let _ = reply.send(self.transact(&hand_over).await);
                }
                Some(Request::TakeOver(take_over, reply)) => {
                    let _ = reply.send(self.transact(&take_over).await);
                }
                Some(Request::Forget(forget, reply)) => {
                    let _ = reply.send(self.transact(&forget).await);
                }
                Some(first) => {
                    let mut group = Group::default();
                    waiting = group.add(first);
                    while waiting.is_none() && !group.is_full() {
                        let Ok(request) = requests.try_recv() else { break };
                        waiting = group.add(request);
                    }
                    let result = self.transact(&group).await;
                    group.answer(result);
                }
            }
        }
    }

    /// Runs work in one transaction, again on a conflict, within bounded time.
    async fn transact<W: Work>(&mut self, work: &W) -> Result<W::Done, StoreError> {
        let Self { link, settings, life } = self;
        let mut by = String::new();
        for _ in 0..TRIES {
            let attempt = async {
                let failed = |error| TransactionError::of(settings, &error);
                let client = link.client().await?;
                let transaction = client.transaction().await.map_err(failed)?;
                let done = work.run(&transaction, settings, *life).await?;
                transaction.commit().await.map_err(failed)?;
                Ok(done)
            };
            match timeout(ANSWER_MAX, attempt).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(TransactionError::Store(error))) => return Err(error),
                Ok(Err(TransactionError::Again(error))) => by = error,
                Err(_) => return Err(link.give_up()),
            }
        }
        Err(StoreError::Unavailable(by))
    }
}
