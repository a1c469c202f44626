use super::error::{is_lost, trouble};
use super::settings::Settings;
use crate::ledger::LedgerError;
use crate::ledger::changes::Changes;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, FromRedisValue, PushInfo, PushKind, ScriptInvocation};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;
use tokio::time::{Duration, Instant, timeout_at};

/// After a failed attempt the next waits this long, then twice as long each time.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_secs(2);

/// Calls that wait for their answer on one connection. More wait for those, within their time.
const CALLS_MAX: usize = 1_024;

/// One connection for calls and for word of changes, that comes back by itself.
#[derive(Debug)]
pub(super) struct Link {
    settings: Settings,
    channel: String,
    changes: Changes,
    state: Mutex<State>,
    /// The number of the connection that lives, 0 when none does. The end of one is not that of the next.
    live: Arc<AtomicU64>,
}

struct State {
    connected: Option<MultiplexedConnection>,
    /// Counts connections.
    number: u64,
    retry_at: Option<Instant>,
    delay: Duration,
    failed_by: Option<LedgerError>,
}

// === impl Link ===

impl Link {
    pub(super) fn new(settings: Settings, channel: String, changes: Changes) -> Self {
        let state = State {
            connected: None,
            number: 0,
            retry_at: None,
            delay: RETRY_FIRST,
            failed_by: None,
        };
        let state = Mutex::new(state);
        Self { settings, channel, changes, state, live: Arc::default() }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// True if change notifications arrive.
    pub(super) fn is_up(&self) -> bool {
        self.live.load(Ordering::Relaxed) != 0
    }

    /// Runs a script, within the time that a call has.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, LedgerError> {
        let until = Instant::now() + self.settings.timeout;
        let late = |_| self.unavailable("no answer in time");
        let (number, mut connection) =
            timeout_at(until, self.connection(until)).await.map_err(late)??;
        match timeout_at(until, script.invoke_async(&mut connection)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                if is_lost(&error) {
                    lose(&self.live, number);
                }
                Err(trouble(&self.settings.shown, &error))
            }
            // A server that is silent is asked anew: what waits on this connection would only become more.
            Err(elapsed) => {
                lose(&self.live, number);
                Err(late(elapsed))
            }
        }
    }

    async fn connection(
        &self,
        until: Instant,
    ) -> Result<(u64, MultiplexedConnection), LedgerError> {
        let mut state = self.state.lock().await;
        let lives = self.live.load(Ordering::Relaxed) == state.number;
        if let Some(connection) = state.connected.as_ref().filter(|_| lives) {
            return Ok((state.number, connection.clone()));
        }
        if let Some(failed_by) = state.failed_by.clone()
            && state.retry_at.is_some_and(|at| Instant::now() < at)
        {
            return Err(failed_by);
        }
        // Noted before the attempt: a caller that gives up in the middle of it has failed, too.
        state.failed_by = Some(self.unavailable("it does not answer"));
        state.retry_at = Some(Instant::now() + state.delay);
        state.delay = (state.delay * 2).min(RETRY_LAST);
        state.connected = None;
        state.number += 1;
        self.live.store(state.number, Ordering::Relaxed);
        match self.connect(state.number, until).await {
            Ok(connection) => {
                state.connected = Some(connection.clone());
                (state.delay, state.failed_by, state.retry_at) = (RETRY_FIRST, None, None);
                // What happened until now was not heard.
                self.changes.announce();
                Ok((state.number, connection))
            }
            Err(error) => {
                lose(&self.live, state.number);
                state.failed_by = Some(error.clone());
                Err(error)
            }
        }
    }

    async fn connect(
        &self,
        number: u64,
        until: Instant,
    ) -> Result<MultiplexedConnection, LedgerError> {
        let (changes, live) = (self.changes.clone(), self.live.clone());
        let on_push = move |push: PushInfo| {
            match push.kind {
                PushKind::Message => changes.announce(),
                PushKind::Disconnection => {
                    lose(&live, number);
                    changes.announce();
                }
                _ => {}
            }
            Ok::<_, Infallible>(())
        };
        // The call's own time is the limit, so the library needs none.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(None)
            .set_response_timeout(None)
            .set_concurrency_limit(CALLS_MAX)
            .set_push_sender(on_push);
        let connecting = async {
            let client = &self.settings.client;
            let mut connection =
                client.get_multiplexed_async_connection_with_config(&config).await?;
            connection.subscribe(&self.channel).await?;
            Ok(connection)
        };
        match timeout_at(until, connecting).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(trouble(&self.settings.shown, &error)),
            Err(_) => Err(self.unavailable("no connection in time")),
        }
    }

    fn unavailable(&self, what: &str) -> LedgerError {
        LedgerError::Unavailable(format!("{}: {what}", self.settings.shown))
    }
}

// === impl State ===

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("connected", &self.connected.is_some())
            .finish_non_exhaustive()
    }
}

/// A connection is of no use any more: the next call makes another.
fn lose(live: &AtomicU64, number: u64) {
    let _ = live.compare_exchange(number, 0, Ordering::Relaxed, Ordering::Relaxed);
}
