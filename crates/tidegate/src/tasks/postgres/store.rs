use super::adopt::{Adopt, Forget, Whose};
use super::hand_over::{HandOver, TakeOver};
use super::hints::HintReceiver;
use super::request::Request;
use super::step::Step;
use super::submit::{NewRow, number};
use super::writer::{ANSWER_MAX, Writer};
use super::{count, read};
use crate::storage::StoreError;
use crate::storage::name::escape;
use crate::storage::postgres::store_error;
use crate::storage::postgres::{Link, Settings, query};
use crate::tasks::bounds::{PAGE_MAX, check_change, check_new, check_owner};
use crate::tasks::{
    Change, ChangeOutcome, Claim, Claimed, Durability, NewTask, QueueDepth, StoreHint, Submission,
    TaskPage, TaskQuery, TaskRecord, TaskStore,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::task::{OutputChunk, TaskId};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// Migrations, in order.
const STEPS: [&str; 3] =
    [include_str!("schema_1.sql"), include_str!("schema_2.sql"), include_str!("schema_3.sql")];

/// Number of changes that may be queued for the writer. More wait in the calls themselves.
const REQUESTS_WAITING: usize = 1_024;

/// The most tasks of one adoption: with the longest code all of them together still fit into memory.
const ADOPT_MAX: usize = 100;

/// The longest that a manager can say to be alive: a year.
const TTL_MS_MAX: i64 = 365 * 24 * 3_600 * 1_000;

const BEAT: &str = "INSERT INTO $schema.owners (owner, alive_until) \
    VALUES ($1, now() + $2::bigint * interval '1 millisecond') \
    ON CONFLICT (owner) DO UPDATE SET alive_until = excluded.alive_until";

/// Tasks in a PostgreSQL database.
///
/// Creates its tables in a schema of its own: `tidegate_tasks`, or `NAME_tasks` with `?schema=NAME` in the
/// address. The other parameters are those of the usage store. Several managers may use one schema at the same
/// time. Queued submissions and changes share a transaction. All of them survive a power cut, whatever
/// [`Durability`] asks: a manager must not know more than its database, which may end without it.
///
/// A connection that is gone is made again by the next call, after a delay that grows up to 5 s; every call ends
/// in bounded time. When a connection breaks while a commit is under way, nobody knows whether it was made: the
/// call fails, and repeating it finds out.
///
/// The database's clock decides whether a manager is alive. A manager without a heartbeat counts as gone.
pub struct PostgresTaskStore {
    settings: Arc<Settings>,
    requests: mpsc::Sender<Request>,
    writer: JoinHandle<()>,
    /// Connection for reads of one task.
    reader: Mutex<Link>,
    /// Connection for lists, which may take long: reads of one task should not wait for them.
    lister: Mutex<Link>,
    /// Connection for heartbeats: a manager must not seem dead because the writer is busy.
    heartbeat: Mutex<Link>,
    hints: HintReceiver,
}

// === impl PostgresTaskStore ===

impl PostgresTaskStore {
    /// Connects to `postgres://user:password@host/database`, and makes or updates the tables.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](StoreError::Unavailable) when the database can't be reached now,
    /// [`Unusable`](StoreError::Unusable) when the address is wrong, access is denied, or the schema belongs to
    /// another program or has a newer version. No error shows the password.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with IO and time.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let mut settings = Settings::parse(url)?;
        settings.schema = settings.schema.with_suffix("tasks").ok_or_else(|| {
            StoreError::Unusable(format!("{}: schema= is too long: 57 at most", settings.shown))
        })?;
        let settings = Arc::new(settings);
        let mut link = Link::new(settings.clone());
        let life = match timeout(ANSWER_MAX, prepare(&mut link, &settings)).await {
            Ok(life) => life?,
            Err(_) => return Err(link.give_up()),
        };
        let (requests, waiting) = mpsc::channel(REQUESTS_WAITING);
        let writer = Writer { link, settings: settings.clone(), life };
        let writer = tokio::spawn(writer.serve(waiting));
        let [reader, lister, heartbeat] = [(); 3].map(|()| Mutex::new(Link::new(settings.clone())));
        let hints = HintReceiver::start(settings.clone());
        Ok(Self { settings, requests, writer, reader, lister, heartbeat, hints })
    }

    /// Finishes what is under way and closes the connections.
    pub async fn close(self) {
        let Self { requests, writer, .. } = self;
        drop(requests);
        // Its end is all that is waited for; what it was asked for has been answered.
        let _ = writer.await;
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Request,
    ) -> Result<T, StoreError> {
        let gone =
            || StoreError::Unavailable(format!("{}: the store is closed", self.settings.shown));
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl TaskStore for PostgresTaskStore {
    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError> {
        check_new(&task)?;
        let new = Box::new(NewRow::new(&task)?);
        self.ask(|reply| Request::Submit(new, reply)).await
    }

    async fn persist(&self, change: Change, _: Durability) -> Result<ChangeOutcome, StoreError> {
        check_change(&change)?;
        let step = Box::new(Step::new(&change)?);
        self.ask(|reply| Request::Persist(step, reply)).await
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, StoreError> {
        let get =
            async |client: &Client, settings: &Settings| read::get(client, settings, id).await;
        query(&self.reader, ANSWER_MAX, get).await
    }

    async fn output(&self, id: &TaskId) -> Result<Option<Vec<OutputChunk>>, StoreError> {
        let output =
            async |client: &Client, settings: &Settings| read::output(client, settings, id).await;
        query(&self.reader, ANSWER_MAX, output).await
    }

    async fn list(&self, wanted: &TaskQuery) -> Result<TaskPage, StoreError> {
        let before = match wanted.position()? {
            Some(place) => i64::try_from(place).unwrap_or(i64::MAX),
            None => i64::MAX,
        };
        let list = async |client: &Client, settings: &Settings| {
            read::list(client, settings, wanted, before).await
        };
        query(&self.lister, ANSWER_MAX, list).await
    }

    async fn counts(&self) -> Result<[u64; 6], StoreError> {
        let counts =
            async |client: &Client, settings: &Settings| read::counts(client, settings).await;
        query(&self.reader, ANSWER_MAX, counts).await
    }

    async fn beat(&self, owner: &str, ttl: Duration) -> Result<(), StoreError> {
        check_owner(owner)?;
        let ttl_ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX).min(TTL_MS_MAX);
        let beat = async |client: &Client, settings: &Settings| {
            let statement = settings.schema.sql(BEAT);
            let owner = escape(owner);
            client
                .execute_typed(&statement, &[(&owner, Type::TEXT), (&ttl_ms, Type::INT8)])
                .await
                .map(drop)
                .map_err(|error| store_error(&settings.shown, &error))
        };
        query(&self.heartbeat, ANSWER_MAX, beat).await
    }

    async fn adopt(
        &self,
        owner: &str,
        limit: usize,
        others: bool,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        check_owner(owner)?;
        let limit = limit.clamp(1, ADOPT_MAX) as i64;
        let whose = if others { Whose::OwnAndOfTheGone } else { Whose::Own };
        let adopt = Adopt { owner: escape(owner).into_owned(), limit, whose };
        self.ask(|reply| Request::Adopt(adopt, reply)).await
    }

    async fn claim(&self, claim: Claim) -> Result<Claimed, StoreError> {
        check_owner(&claim.owner)?;
        self.ask(|reply| Request::Claim(claim, reply)).await
    }

    async fn adopt_queued(&self, owner: &str, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        check_owner(owner)?;
        let limit = limit.clamp(1, ADOPT_MAX) as i64;
        let adopt = Adopt { owner: escape(owner).into_owned(), limit, whose: Whose::Nobodys };
        self.ask(|reply| Request::Adopt(adopt, reply)).await
    }

    async fn hand_over(&self, owner: &str, executors: &[String]) -> Result<u64, StoreError> {
        check_owner(owner)?;
        let executors = executors.iter().map(|name| escape(name).into_owned()).collect();
        let hand_over = HandOver { owner: escape(owner).into_owned(), executors };
        self.ask(|reply| Request::HandOver(hand_over, reply)).await
    }

    async fn take_over(
        &self,
        owner: &str,
        executors: &[String],
        limit: usize,
    ) -> Result<Vec<TaskRecord>, StoreError> {
        check_owner(owner)?;
        let executors = executors.iter().map(|name| escape(name).into_owned()).collect();
        let limit = limit.clamp(1, ADOPT_MAX) as i64;
        let take_over = TakeOver { owner: escape(owner).into_owned(), executors, limit };
        self.ask(|reply| Request::TakeOver(take_over, reply)).await
    }

    async fn hint(&self) -> StoreHint {
        self.hints.next().await
    }

    async fn queue_position(&self, id: &TaskId, ahead_max: u64) -> Result<Option<u64>, StoreError> {
        let ahead_max = number(ahead_max);
        let ahead = async |client: &Client, settings: &Settings| {
            read::queue_position(client, settings, id, ahead_max).await
        };
        query(&self.reader, ANSWER_MAX, ahead).await
    }

    async fn queue_depth(&self, count_max: u64) -> Result<QueueDepth, StoreError> {
        let count_max = number(count_max);
        let depth = async |client: &Client, settings: &Settings| {
            read::queue_depth(client, settings, count_max).await
        };
        query(&self.lister, ANSWER_MAX, depth).await
    }

    async fn forget(&self, ended_before_ms: u64, limit: usize) -> Result<u64, StoreError> {
        let ended_before_ms = i64::try_from(ended_before_ms).unwrap_or(i64::MAX);
        let forget = Forget { ended_before_ms, limit: limit.clamp(1, PAGE_MAX) as i64 };
        self.ask(|reply| Request::Forget(forget, reply)).await
    }
}

impl fmt::Debug for PostgresTaskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresTaskStore").field(&self.settings).finish()
    }
}

/// Makes the tables; the number of this opening of the store.
async fn prepare(link: &mut Link, settings: &Settings) -> Result<i64, StoreError> {
    let client = link.client().await?;
    settings.schema.migrate(client, &settings.shown, &STEPS).await?;
    count::fold(client, settings).await;
    let statement = settings.schema.sql("SELECT nextval('$schema.lives')");
    let life = client.query_one(&statement, &[]).await;
    Ok(life.map_err(|error| store_error(&settings.shown, &error))?.get(0))
}
