use super::{read, series, write};
use crate::storage::postgres::Settings;
use crate::storage::postgres::store_error;
use crate::storage::postgres::{Connected, Link, query};
use crate::store::series::KnownSeries;
use crate::store::tally::floor;
use crate::store::{
    Appended, PricedBatch, Records, SeriesLimits, Store, StoreError, Unstored, UsagePage,
    UsageQuery,
};
use rust_decimal::Decimal;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::sequence::SeqWindow;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_postgres::Client;

/// Longest wait for an answer of the database.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Migrations, in order.
const STEPS: [&str; 4] = [
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
];

/// Number of appends between two folds of sums.
const FOLD_EVERY: u32 = 256;

const DAY_NS: i64 = 24 * 60 * 60 * 1_000_000_000;

/// A store in a PostgreSQL database.
///
/// Creates its tables in a schema of its own: `tidegate`, or another that the address names (`?schema=NAME`).
/// Several programs may write into the same schema: no batch counts twice. A connection that is gone is made
/// again by the next call, after a delay that grows up to 5 s.
///
/// `sslmode` in the address says how connections are protected: `disable`; `prefer` (as if nothing is said: TLS
/// if the server has it, its certificate not checked); `require` or `verify-full` (TLS, the certificate checked
/// against the machine's authorities or `sslrootcert=FILE`).
///
/// When the connection breaks while a commit is under way, nobody knows whether it was made: `append` fails, and
/// repeating it finds out by the batches' numbers. A batch without an origin may then count twice.
pub struct PostgresStore {
    settings: Arc<Settings>,
    writer: Mutex<Writer>,
    /// Connection for reads on the path of a record.
    reader: Mutex<Link>,
    /// Connection for usage reports, which may take long: no record should wait for them.
    reports: Mutex<Link>,
}

struct Writer {
    link: Link,
    series: KnownSeries,
    limits: SeriesLimits,
    appends: u32,
}

// === impl PostgresStore ===

impl PostgresStore {
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
        let settings = Arc::new(Settings::parse(url)?);
        let mut link = Link::new(settings.clone());
        settings.schema.migrate(link.client().await?, &settings.shown, &STEPS).await?;
        let [reader, reports] = [(); 2].map(|()| Mutex::new(Link::new(settings.clone())));
        let (series, limits) = (KnownSeries::default(), SeriesLimits::default());
        let writer = Mutex::new(Writer { link, series, limits, appends: 0 });
        Ok(Self { settings, writer, reader, reports })
    }

    /// The same store with bounds for its series.
    #[must_use]
    pub fn limited(mut self, limits: SeriesLimits) -> Self {
        self.writer.get_mut().limits = limits;
        self
    }

    /// Closes the connections.
    pub async fn close(self) {
        drop(self);
    }
}

impl Store for PostgresStore {
    async fn append(&self, batches: Vec<PricedBatch>) -> Result<Vec<Appended>, Unstored> {
        let counted = self.append_counted(batches).await?;
        Ok(counted.into_iter().map(|(appended, _)| appended).collect())
    }

    async fn append_counted(
        &self,
        batches: Vec<PricedBatch>,
    ) -> Result<Vec<(Appended, u64)>, Unstored> {
        let mut writer = self.writer.lock().await;
        match writer.append(&self.settings, &batches).await {
            Ok(outcomes) => {
                writer.fold(&self.settings).await;
                Ok(outcomes)
            }
            Err(error) => Err(Unstored { batches, error }),
        }
    }

    async fn retain(&self, before_ns: i64) -> Result<u64, StoreError> {
        let failed = |error| store_error(&self.settings.shown, &error);
        let day_ns = floor(before_ns, DAY_NS);
        let mut connected = Connected::new(&self.settings).await?;
        let client = &mut connected.client;
        client.batch_execute("SET statement_timeout = 0").await.map_err(failed)?;
        let mut deleted = 0;
        for statement in [
            "DELETE FROM $schema.records WHERE time_ns < $1",
            "DELETE FROM $schema.sums WHERE minute_ns < $1",
            "DELETE FROM $schema.senders \
             WHERE last_at < timestamptz 'epoch' + ($1::bigint / 1000) * interval '1 microsecond'",
        ] {
            let statement = self.settings.schema.sql(statement);
            deleted += client.execute(&statement, &[&day_ns]).await.map_err(failed)?;
        }
        // Totals are no rows of anybody's.
        let totals = self.settings.schema.sql("DELETE FROM $schema.totals WHERE minute_ns < $1");
        client.execute(&totals, &[&day_ns]).await.map_err(failed)?;
        series::forget_old(client, &self.settings).await.map_err(failed)?;
        self.writer.lock().await.series.clear();
        Ok(deleted)
    }

    fn scan(&self, from_ns: i64, until_ns: i64) -> Records {
        let (sender, records) = Records::channel();
        let settings = self.settings.clone();
        tokio::spawn(async move { read::scan(&settings, from_ns, until_ns, &sender).await });
        records
    }

    async fn seen(&self, sender: &str) -> Result<SeqWindow, StoreError> {
        let seen =
            async |client: &Client, settings: &Settings| read::seen(client, settings, sender).await;
        query(&self.reader, ANSWER_MAX, seen).await
    }

    async fn owner(&self, sender: &str) -> Result<Option<Arc<str>>, StoreError> {
        let owner = async |client: &Client, settings: &Settings| {
            read::owner(client, settings, sender).await
        };
        query(&self.reader, ANSWER_MAX, owner).await
    }

    async fn used(
        &self,
        tenant: &str,
        meter: &str,
        from_ns: i64,
        until_ns: i64,
    ) -> Result<Decimal, StoreError> {
        let used = async |client: &Client, settings: &Settings| {
            read::used(client, settings, (tenant, meter), (from_ns, until_ns)).await
        };
        query(&self.reader, ANSWER_MAX, used).await
    }

    async fn usage_page(&self, wanted: &UsageQuery) -> Result<UsagePage, StoreError> {
        let usage = async |client: &Client, settings: &Settings| {
            read::usage(client, settings, wanted).await
        };
        query(&self.reports, ANSWER_MAX, usage).await
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresStore").field(&self.settings).finish()
    }
}

// === impl Writer ===

impl Writer {
    async fn append(
        &mut self,
        settings: &Settings,
        batches: &[PricedBatch],
    ) -> Result<Vec<(Appended, u64)>, StoreError> {
        let answer = within(async {
            let client = self.link.client().await?;
            let series = (self.limits, &mut self.series);
            write::append(client, settings, series, batches).await
        });
        let answer = answer.await;
        answer.unwrap_or_else(|| Err(self.link.give_up()))
    }

    /// Only for speed: what fails here is done the next time.
    async fn fold(&mut self, settings: &Settings) {
        self.appends += 1;
        if self.appends < FOLD_EVERY {
            return;
        }
        self.appends = 0;
        let folded = within(async { write::fold(self.link.client().await?, settings).await }).await;
        match folded {
            Some(Ok(_)) => {}
            Some(Err(error)) => tracing::debug!(%error, "sums are not folded now"),
            None => self.link.reset(),
        }
    }
}

/// The answer, or nothing when it takes too long.
async fn within<T>(answer: impl Future<Output = T>) -> Option<T> {
    timeout(ANSWER_MAX, answer).await.ok()
}
