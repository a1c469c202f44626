use super::ProxyError;
use super::places::Places;
use super::upload::UploadWatch;
use crate::gateway::{Busy, ThreadContext};
use crate::record::Entry;
use crate::telemetry::{Queued, ThreadMetrics};
use crate::upstream::{Connection, Placed, Pool};
use http::StatusCode;
use std::sync::Arc;
use std::time::Instant;
use tidegate::Outcome;

/// Everything that one admitted request holds until its answer has been passed on. Dropped early, when the
/// client leaves or the task ends, it releases all of it, and the upstream's connection is closed.
pub struct Exchange {
    /// Written down before its places are free: who takes one of them next must not seem to have held it at the
    /// same time. The first field is dropped first.
    entry: Option<Entry>,
    places: Places,
    placed: Placed,
    connection: Connection,
    pool: Arc<Pool>,
    upload: Option<Arc<UploadWatch>>,
    /// Whether the whole request was out when the answer began. If not, the upstream may close over the rest.
    reusable: bool,
    metrics: Arc<ThreadMetrics>,
    started: Instant,
    status: StatusCode,
    _busy: Busy,
}

/// What an admitted request brings along, from before it was sent.
pub struct Admitted {
    pub places: Places,
    pub started: Instant,
    pub busy: Busy,
    /// Ends when the answer begins.
    pub queued: Queued,
}

// === impl Exchange ===

impl Exchange {
    pub fn new(
        thread: &ThreadContext,
        admitted: Admitted,
        (placed, connection): (Placed, Connection),
        upload: Option<Arc<UploadWatch>>,
        status: StatusCode,
        entry: Option<Entry>,
    ) -> Self {
        let (pool, metrics) = (Arc::clone(&thread.pool), Arc::clone(&thread.metrics));
        let Admitted { places, started, busy, queued } = admitted;
        drop(queued);
        let reusable = upload.as_ref().is_none_or(|upload| upload.has_ended());
        Self {
            entry,
            reusable,
            places,
            placed,
            connection,
            pool,
            upload,
            metrics,
            started,
            status,
            _busy: busy,
        }
    }

    /// When its request came in.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The answer was passed on whole.
    pub fn complete(self) {
        self.metrics.answered(self.places.priority(), self.status, self.started.elapsed());
        if self.reusable {
            self.pool.put_back(self.placed.upstream(), self.connection);
        }
        drop(self.entry);
        self.places.finish(Outcome::Success);
    }

    /// The exchange is over and its connection can't be used again.
    pub fn close(self) {
        self.metrics.answered(self.places.priority(), self.status, self.started.elapsed());
        drop(self.entry);
        self.places.finish(Outcome::Success);
    }

    /// The answer broke off on the upstream's side.
    pub fn fail(self) {
        self.placed.failed();
        self.metrics.answered(self.places.priority(), self.status, self.started.elapsed());
        drop(self.entry);
        self.places.finish(Outcome::Dropped);
    }

    /// The first piece of the answer is here.
    pub fn prefilled(&mut self) {
        self.placed.prefilled();
    }

    /// When the request last moved, while it is still being sent.
    pub fn upload_progress(&self) -> Option<Instant> {
        let upload = self.upload.as_ref()?;
        (!upload.has_ended()).then(|| upload.last_progress())
    }

    /// The answer is one that can't be passed on.
    pub fn bad_answer(self, why: &'static str) -> ProxyError {
        self.placed.failed();
        let upstream = self.placed.upstream().name.clone();
        let error = ProxyError::BadAnswer { upstream, why };
        drop(self.entry);
        self.places.finish(Outcome::Dropped);
        error
    }
}
