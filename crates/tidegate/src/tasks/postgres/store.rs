use super::adopt::{Adopt, Forget};
use super::keep::Step;
use super::submit::NewRow;
use super::writer::{ANSWER_MAX, Request, Writer};
use super::{count, read};
use crate::store::StoreError;
use crate::store::name::escape;
use crate::store::postgres::error::trouble;
use crate::store::postgres::link::Link;
use crate::store::postgres::settings::Settings;
use crate::tasks::bounds::{PAGE_MAX, check_change, check_new, check_owner};
use crate::tasks::{
    Change, Durability, Kept, NewTask, Submission, TaskPage, TaskQuery, TaskRecord, TaskStore,
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

/// What makes our tables, in this order.
const STEPS: [&str; 1] = [include_str!("schema_1.sql")];

/// How many changes may wait for the writer. More wait in the calls themselves.
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
/// It makes its tables in a schema of its own beside that of the usage store: `tidegate_tasks`, or `NAME_tasks`
/// with `?schema=NAME` in the address, which says everything else too in the same way. Several managers may use
/// one schema at the same time. Submissions and changes that wait share a transaction. All of them survive a
/// power cut, whatever [`Durability`] asks: a manager must not know more than its database, which may end without
/// it.
///
/// A connection that is gone is made again by the next call, after a delay that grows up to 5 s; every call ends
/// in bounded time. When a connection breaks while a commit is under way, nobody knows whether it was made: the
/// call fails, and repeating it finds out.
///
/// Whether a manager is alive goes by the database's clock. A manager that never said so counts as gone.
pub struct PostgresTaskStore {
    settings: Arc<Settings>,
    requests: mpsc::Sender<Request>,
    writer: JoinHandle<()>,
    /// What a caller asks about one task.
    reader: Mutex<Link>,
    /// Lists: they may take long, and no single task should wait for that.
    lister: Mutex<Link>,
    /// A manager must not seem dead because much is written.
    beater: Mutex<Link>,
}

// === impl PostgresTaskStore ===

impl PostgresTaskStore {
    /// Connects to `postgres://user:password@host/database`, and makes or updates the tables.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](StoreError::Unavailable) when the database can't be reached now,
    /// [`Unusable`](StoreError::Unusable) when the address is wrong, we are not let in, or the schema is not ours
    /// or of a newer version. No error shows the password.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with IO and time.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let mut settings = Settings::parse(url)?;
        settings.schema = settings.schema.beside("tasks").ok_or_else(|| {
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
        let [reader, lister, beater] = [(); 3].map(|()| Mutex::new(Link::new(settings.clone())));
        Ok(Self { settings, requests, writer, reader, lister, beater })
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

    /// Asks on one of the connections, within bounded time also when others ask on it.
    async fn query<T>(
        &self,
        link: &Mutex<Link>,
        what: impl AsyncFnOnce(&Client, &Settings) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Ok(mut link) = timeout(ANSWER_MAX, link.lock()).await else {
            let shown = &self.settings.shown;
            return Err(StoreError::Unavailable(format!("{shown}: too many wait for an answer")));
        };
        let answer = async { what(link.client().await?, &self.settings).await };
        let answer = timeout(ANSWER_MAX, answer).await;
        answer.unwrap_or_else(|_| Err(link.give_up()))
    }
}

impl TaskStore for PostgresTaskStore {
    async fn submit(&self, task: NewTask) -> Result<Submission, StoreError> {
        check_new(&task)?;
        let new = Box::new(NewRow::new(&task)?);
        self.ask(|reply| Request::Submit(new, reply)).await
    }

    async fn keep(&self, change: Change, _: Durability) -> Result<Kept, StoreError> {
        check_change(&change)?;
        let step = Box::new(Step::new(&change)?);
        self.ask(|reply| Request::Keep(step, reply)).await
    }

    async fn get(&self, id: &TaskId) -> Result<Option<TaskRecord>, StoreError> {
        let get =
            async |client: &Client, settings: &Settings| read::get(client, settings, id).await;
        self.query(&self.reader, get).await
    }

    async fn output(&self, id: &TaskId) -> Result<Option<Vec<OutputChunk>>, StoreError> {
        let output =
            async |client: &Client, settings: &Settings| read::output(client, settings, id).await;
        self.query(&self.reader, output).await
    }

    async fn list(&self, query: &TaskQuery) -> Result<TaskPage, StoreError> {
        let before = match query.place()? {
            Some(place) => i64::try_from(place).unwrap_or(i64::MAX),
            None => i64::MAX,
        };
        let list = async |client: &Client, settings: &Settings| {
            read::list(client, settings, query, before).await
        };
        self.query(&self.lister, list).await
    }

    async fn counts(&self) -> Result<[u64; 6], StoreError> {
        let counts =
            async |client: &Client, settings: &Settings| read::counts(client, settings).await;
        self.query(&self.reader, counts).await
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
                .map_err(|error| trouble(&settings.shown, &error))
        };
        self.query(&self.beater, beat).await
    }

    async fn adopt(&self, owner: &str, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        check_owner(owner)?;
        let limit = limit.clamp(1, ADOPT_MAX) as i64;
        let adopt = Adopt { owner: escape(owner).into_owned(), limit };
        self.ask(|reply| Request::Adopt(adopt, reply)).await
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
    Ok(life.map_err(|error| trouble(&settings.shown, &error))?.get(0))
}
