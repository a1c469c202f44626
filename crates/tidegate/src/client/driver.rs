use super::connector::Connector;
use super::error::{ClientError, Trouble};
use super::session::{End, Session};
use super::shared::Shared;
use crate::rng::Rng;
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::frame::Hello;
use tokio::time::{Instant, sleep, timeout};

/// Software name sent in the hello, for the server's logs.
const SOFTWARE: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// Being told twice within this time that another connection speaks for the same sender is no accident: two
/// clients have one name, and would push each other out for ever.
const TAKEN_TWICE_WITHIN: Duration = Duration::from_secs(600);

/// The task of a client: connects, and connects again, until the client ends.
pub(super) struct Driver<C> {
    pub shared: Arc<Shared>,
    pub connector: C,
    pub rng: Rng,
}

// === impl Driver ===

impl<C: Connector> Driver<C> {
    pub(super) async fn run(mut self) {
        let server = self.connector.server();
        let config = &self.shared.config;
        let hello = Hello::new(config.sender.clone(), SOFTWARE).with_token(config.token.clone());
        let hello = hello.encode();
        let mut stop = self.shared.stop.subscribe();
        let mut wait = Duration::ZERO;
        let mut taken_at: Option<Instant> = None;
        let mut ever_progressed = false;
        loop {
            let (end, progressed) = self.connection(&server, hello.clone()).await;
            let trouble = match end {
                End::Stopped => return,
                End::Final(error) => {
                    tracing::error!(%server, %error, "nothing can be sent");
                    return self.shared.end(error);
                }
                End::Trouble(trouble) => trouble,
            };
            ever_progressed |= progressed;
            // A server that was good once is waited for: its certificate may be under renewal.
            let permanent = trouble.io_error().filter(|_| !ever_progressed);
            if let Some(message) = permanent.and_then(|error| self.connector.permanent(error)) {
                return self.shared.end(ClientError::Unreachable { server, message });
            }
            if trouble.is_sender_taken() {
                let before = taken_at.replace(Instant::now());
                if before.is_some_and(|before| before.elapsed() < TAKEN_TWICE_WITHIN) {
                    return self.shared.end(self.shared.name_taken(&server));
                }
            }
            // A server that takes connections and nothing else is not pressed harder than one that is away.
            let before = if progressed { Duration::ZERO } else { wait };
            wait = self.shared.config.backoff.next(before, self.rng.fraction());
            tracing::warn!(%server, %trouble, wait_ms = wait.as_millis() as u64, "connecting again");
            self.shared.disconnected(trouble);
            tokio::select! {
                () = sleep(wait) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    async fn connection(&mut self, server: &str, hello: Bytes) -> (End, bool) {
        let mut stop = self.shared.stop.subscribe();
        let patience = self.shared.config.connect_timeout;
        let made = tokio::select! {
            made = timeout(patience, self.connector.connect()) => made,
            _ = stop.wait_for(|stop| *stop) => return (End::Stopped, false),
        };
        let made = made.unwrap_or_else(|_| {
            let late = format!("no answer within {patience:?}");
            Err(io::Error::new(io::ErrorKind::TimedOut, late))
        });
        match made {
            Ok(io) => Session::new(&self.shared, server, &self.rng, io, hello).run().await,
            Err(error) => {
                let server = server.to_owned();
                (End::Trouble(Trouble::Connect { server, error }), false)
            }
        }
    }
}
