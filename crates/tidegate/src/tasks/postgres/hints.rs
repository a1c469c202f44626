use super::transaction::TransactionError;
use crate::storage::postgres::{Listener, News, Settings};
use crate::tasks::StoreHint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;
use tokio_postgres::Transaction;
use tokio_postgres::types::Type;

/// Payloads of notifications.
pub(super) const QUEUED: &str = "queued";
pub(super) const HANDED_OVER: &str = "handed over";

/// Hints of the database to this process, merged until somebody asks.
#[derive(Default)]
struct Hints {
    queued: AtomicBool,
    handed_over: AtomicBool,
    came: Notify,
}

/// Receiver of hints, on a connection of its own.
pub(super) struct HintReceiver {
    hints: Arc<Hints>,
    _listener: Listener,
}

/// Notifies every process at the commit of this transaction. The same payload counts once.
pub(super) async fn notify(
    transaction: &Transaction<'_>,
    settings: &Settings,
    payload: &str,
) -> Result<(), TransactionError> {
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 1] =
        [(&payload, Type::TEXT)];
    // A schema's name needs no quotes.
    let statement = settings.schema.sql("SELECT pg_notify('$schema', $1)");
    let sent = transaction.query_typed(&statement, &parameters).await;
    sent.map(drop).map_err(|error| TransactionError::of(settings, &error))
}

// === impl HintReceiver ===

impl HintReceiver {
    /// Listens from now on.
    pub(super) fn start(settings: Arc<Settings>) -> Self {
        let hints = Arc::new(Hints::default());
        let receiver = Arc::clone(&hints);
        let listener = Listener::start(settings, move |news| {
            let both = matches!(news, News::Connected);
            let payload = match news {
                News::Connected => "",
                News::Payload(payload) => payload,
            };
            // What was sent while nobody listened is lost.
            if both || payload == QUEUED {
                receiver.queued.store(true, Ordering::Release);
            }
            if both || payload == HANDED_OVER {
                receiver.handed_over.store(true, Ordering::Release);
            }
            receiver.came.notify_one();
        });
        Self { hints, _listener: listener }
    }

    /// Waits for a hint.
    pub(super) async fn next(&self) -> StoreHint {
        loop {
            let hint = StoreHint {
                queued: self.hints.queued.swap(false, Ordering::AcqRel),
                handed_over: self.hints.handed_over.swap(false, Ordering::AcqRel),
            };
            if hint != StoreHint::default() {
                return hint;
            }
            self.hints.came.notified().await;
        }
    }
}
