use super::error::trouble;
use super::settings::Settings;
use super::tls::{self, TlsMode};
use crate::store::StoreError;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_postgres::{Client, NoTls};

/// After a failed attempt the next waits this long, then twice as long each time.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(5);

/// How long connecting may take in all: several addresses, TLS, and what is asked first.
const CONNECT_MAX: Duration = Duration::from_secs(15);

/// A statement that takes longer is given up by the server. A transaction whose client says nothing for seconds is
/// that of a process that was stopped: nobody else should wait for the rows it has locked. Without the last line a
/// server that was told not to wait for its disk would acknowledge what a power cut takes.
const SESSION: &str = "SET statement_timeout = '30s'; SET lock_timeout = '30s'; \
    SET idle_in_transaction_session_timeout = '5s'; \
    SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

/// A connection that comes back by itself.
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

    /// Closes the connection: what it still had to say no longer matters.
    pub(crate) fn reset(&mut self) {
        self.connected = None;
    }

    /// The same, after an answer that did not come.
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
        let failed = |error| trouble(&settings.shown, &error);
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
