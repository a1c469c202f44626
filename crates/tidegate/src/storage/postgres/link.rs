use super::error::store_error;
use super::settings::Settings;
use super::tls::{self, TlsMode};
use crate::storage::StoreError;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, NoTls};

/// After a failed attempt the next waits this long, then twice as long each time.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(5);

/// Longest duration of connecting in all: several addresses, TLS, and the first statement.
const CONNECT_MAX: Duration = Duration::from_secs(15);

/// A statement that takes longer is given up by the server. A transaction whose client says nothing for seconds is
/// that of a process that was stopped: nobody else should wait for the rows it has locked. Without the last line a
/// server that was told not to wait for its disk would acknowledge what a power cut takes.
const SESSION: &str = "SET statement_timeout = '30s'; SET lock_timeout = '30s'; \
    SET idle_in_transaction_session_timeout = '5s'; \
    SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

/// A connection that is opened again after a failure.
#[derive(Debug)]
pub(crate) struct Link {
    settings: Arc<Settings>,
    connected: Option<Connected>,
    retry_at: Option<Instant>,
    delay: Duration,
    failed_by: Option<StoreError>,
}

/// An open connection. Dropping it closes it.
pub(crate) struct Connected {
    pub(crate) client: Client,
    driver: JoinHandle<()>,
}

/// Queries on a shared connection. The wait for the connection and the query itself take at most `within` each.
pub(crate) async fn query<T>(
    link: &Mutex<Link>,
    within: Duration,
    query: impl AsyncFnOnce(&Client, &Settings) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let Ok(mut link) = timeout(within, link.lock()).await else {
        return Err(StoreError::Unavailable("too many queries wait for an answer".into()));
    };
    let settings = Arc::clone(&link.settings);
    let answer = async { query(link.client().await?, &settings).await };
    let answer = timeout(within, answer).await;
    answer.unwrap_or_else(|_| Err(link.give_up()))
}

// === impl Link ===

impl Link {
    pub(crate) fn new(settings: Arc<Settings>) -> Self {
        Self { settings, connected: None, retry_at: None, delay: RETRY_FIRST, failed_by: None }
    }

    /// The connection, made again if it is gone and the time for that has come.
    pub(crate) async fn client(&mut self) -> Result<&mut Client, StoreError> {
        let connected = match self.connected.take() {
            Some(connected) if !connected.client.is_closed() => connected,
            _ => self.connect().await?,
        };
        Ok(&mut self.connected.insert(connected).client)
    }

    /// Closes the connection without waiting for pending answers.
    pub(crate) fn reset(&mut self) {
        self.connected = None;
    }

    /// Closes the connection after a missing answer.
    pub(crate) fn give_up(&mut self) -> StoreError {
        self.reset();
        StoreError::Unavailable(format!("{}: the database does not answer", self.settings.shown))
    }

    async fn connect(&mut self) -> Result<Connected, StoreError> {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            return Err(self.wait_error());
        }
        match Connected::new(&self.settings).await {
            Ok(connected) => {
                (self.retry_at, self.delay, self.failed_by) = (None, RETRY_FIRST, None);
                Ok(connected)
            }
            Err(error) => {
                self.retry_at = Some(Instant::now() + self.delay);
                self.delay = (self.delay * 2).min(RETRY_LAST);
                self.failed_by = Some(error.clone());
                Err(error)
            }
        }
    }

    fn wait_error(&self) -> StoreError {
        let gone = || StoreError::Unavailable(format!("{}: not connected", self.settings.shown));
        self.failed_by.clone().unwrap_or_else(gone)
    }
}

// === impl Connected ===

impl Connected {
    pub(crate) async fn new(settings: &Settings) -> Result<Self, StoreError> {
        match timeout(CONNECT_MAX, Self::try_new(settings)).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Unavailable(format!(
                "{}: no connection in {} s",
                settings.shown,
                CONNECT_MAX.as_secs(),
            ))),
        }
    }

    async fn try_new(settings: &Settings) -> Result<Self, StoreError> {
        let failed = |error| store_error(&settings.shown, &error);
        let connected = if settings.tls == TlsMode::Off {
            let (client, connection) = settings.config.connect(NoTls).await.map_err(failed)?;
            Self { client, driver: tokio::spawn(drive(connection)) }
        } else {
            let tls = tls::connector(&settings.tls)?;
            let (client, connection) = settings.config.connect(tls).await.map_err(failed)?;
            Self { client, driver: tokio::spawn(drive(connection)) }
        };
        connected.client.batch_execute(SESSION).await.map_err(failed)?;
        Ok(connected)
    }
}

impl std::fmt::Debug for Connected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connected").field("closed", &self.client.is_closed()).finish()
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Its end shows in the client, which is asked before each use.
async fn drive(connection: impl Future<Output = Result<(), tokio_postgres::Error>>) {
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection to the database has ended");
    }
}
