use super::adopt::{Adopt, Forget};
use super::group::{Group, Reply};
use super::keep::Step;
use super::submit::NewRow;
use crate::store::StoreError;
use crate::store::postgres::error::trouble;
use crate::store::postgres::link::Link;
use crate::store::postgres::settings::Settings;
use crate::tasks::{Kept, Submission, TaskRecord};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_postgres::Transaction;
use tokio_postgres::error::SqlState;

/// What is asked of the database gets an answer within this time, or is given up.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(40);

/// How often a transaction is tried when another is in its way.
const TRIES: usize = 5;

/// What the writer is asked for.
pub(super) enum Request {
    Submit(Box<NewRow>, Reply<Submission>),
    Keep(Box<Step>, Reply<Kept>),
    Adopt(Adopt, Reply<Vec<TaskRecord>>),
    Forget(Forget, Reply<u64>),
}

/// What is done in one transaction, and perhaps more than once.
pub(super) trait Work: Sync {
    type Done;

    fn run(
        &self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        life: i64,
    ) -> impl Future<Output = Result<Self::Done, Trouble>> + Send;
}

/// Why a transaction came to nothing.
pub(super) enum Trouble {
    Store(StoreError),
    /// Somebody was in the way, and need not be any more.
    Again(String),
}

/// The one that writes, on a connection of its own.
pub(super) struct Writer {
    pub(super) link: Link,
    pub(super) settings: Arc<Settings>,
    /// Which opening of the store this is.
    pub(super) life: i64,
}

// === impl Trouble ===

impl Trouble {
    pub(super) fn of(settings: &Settings, error: &tokio_postgres::Error) -> Self {
        let passes = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        let store = trouble(&settings.shown, error);
        match error.code().is_some_and(|code| passes.contains(code)) {
            true => Self::Again(store.to_string()),
            false => Self::Store(store),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

// === impl Writer ===

impl Writer {
    /// Does what is asked, until nobody can ask any more.
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

    /// Does something in one transaction, again if others are in its way, within bounded time.
    async fn transact<W: Work>(&mut self, work: &W) -> Result<W::Done, StoreError> {
        let Self { link, settings, life } = self;
        let mut by = String::new();
        for _ in 0..TRIES {
            let attempt = async {
                let failed = |error| Trouble::of(settings, &error);
                let client = link.client().await?;
                let transaction = client.transaction().await.map_err(failed)?;
                let done = work.run(&transaction, settings, *life).await?;
                transaction.commit().await.map_err(failed)?;
                Ok(done)
            };
            match timeout(ANSWER_MAX, attempt).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(Trouble::Store(error))) => return Err(error),
                Ok(Err(Trouble::Again(error))) => by = error,
                Err(_) => return Err(link.give_up()),
            }
        }
        Err(StoreError::Unavailable(by))
    }
}
