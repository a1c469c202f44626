use super::settings::Settings;
use super::tls::{self, TlsMode};
use crate::storage::StoreError;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls};

/// After a connection is lost the next is opened after this time, then after twice as long each time.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LAST: Duration = Duration::from_secs(5);
/// Longest duration of connecting, and of the first statement.
const CONNECT_MAX: Duration = Duration::from_secs(15);
/// A silent connection is asked so often whether it is still there.
const ASK_EVERY: Duration = Duration::from_secs(30);

/// Listener for notifications on the channel with the schema's name, on a connection that is opened again after a
/// failure. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Listener(JoinHandle<()>);

/// News of a listener.
pub(crate) enum News<'a> {
    /// The listener is connected from now on: what was sent before, it has missed.
    Connected,
    /// Payload of a notification.
    Payload(&'a str),
}

// === impl Listener ===

impl Listener {
    /// Listens, and connects again for as long as it lives.
    pub(crate) fn start(
        settings: Arc<Settings>,
        tell: impl Fn(News<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self(tokio::spawn(async move {
            let mut pause = RETRY_FIRST;
            loop {
                let mut listened = false;
                let error = listen(&settings, &mut listened, &tell).await;
                tracing::debug!(%error, "notifications of the database are missed for now");
                pause = if listened { RETRY_FIRST } else { (pause * 2).min(RETRY_LAST) };
                sleep(pause).await;
            }
        }))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Listens until the connection is lost; returns why.
async fn listen(
    settings: &Settings,
    listened: &mut bool,
    tell: &(impl Fn(News<'_>) + Sync),
) -> String {
    let silent = || "the database does not answer".to_owned();
    if settings.tls == TlsMode::Off {
        return match timeout(CONNECT_MAX, settings.config.connect(NoTls)).await {
            Ok(Ok((client, connection))) => {
                follow(settings, client, connection, listened, tell).await
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => silent(),
        };
    }
    let tls = match tls::connector(&settings.tls) {
        Ok(tls) => tls,
        Err(
            StoreError::Unusable(why) | StoreError::Unavailable(why) | StoreError::Refused(why),
        ) => {
            return why;
        }
    };
    match timeout(CONNECT_MAX, settings.config.connect(tls)).await {
        Ok(Ok((client, connection))) => follow(settings, client, connection, listened, tell).await,
        Ok(Err(error)) => error.to_string(),
        Err(_) => silent(),
    }
}

async fn follow<S, T>(
    settings: &Settings,
    client: Client,
    mut connection: Connection<S, T>,
    listened: &mut bool,
    tell: &(impl Fn(News<'_>) + Sync),
) -> String
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let ask = async {
        let statement = settings.schema.sql("LISTEN $schema");
        loop {
            match timeout(CONNECT_MAX, client.batch_execute(&statement)).await {
                Ok(Ok(())) if *listened => {}
                Ok(Ok(())) => {
                    *listened = true;
                    tell(News::Connected);
                }
                Ok(Err(error)) => return error.to_string(),
                Err(_) => return "the database does not answer".to_owned(),
            }
            sleep(ASK_EVERY).await;
        }
    };
    let receive = async {
        loop {
            match poll_fn(|cx| connection.poll_message(cx)).await {
                Some(Ok(AsyncMessage::Notification(note))) => tell(News::Payload(note.payload())),
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.to_string(),
                None => return "the connection was closed".to_owned(),
            }
        }
    };
    tokio::select! {
        why = ask => why,
        why = receive => why,
    }
}
