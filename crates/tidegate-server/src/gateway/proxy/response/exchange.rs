use crate::gateway::activity::ActiveExchange;
use crate::gateway::decision_log::PendingDecision;
use crate::gateway::proxy::context::ThreadProxy;
use crate::gateway::proxy::error::ProxyError;
use crate::gateway::telemetry::{Queued, ThreadMetrics};
use crate::gateway::upstream::Reservation;
use crate::http::admission::{Flow, Permits};
use crate::http::client::{Connection, Pool, UploadWatch};
use http::StatusCode;
use std::sync::Arc;
use std::time::Instant;
use tidegate::Outcome;

/// Everything that one admitted request holds until its answer has been passed on. Dropped early, when the
/// client leaves or the task ends, it releases all of it. The upstream's connection is the response body's.
pub struct Exchange {
    /// Written down before its permits are free: the next holder of one must not seem to have held it at the same
    /// time. The first field is dropped first.
    entry: Option<PendingDecision>,
    permits: Permits,
    reservation: Reservation,
    pool: Arc<Pool>,
    upload: Option<Arc<UploadWatch>>,
    /// True if the whole request was sent when the response began. If not, the upstream may close over the rest.
    reusable: bool,
    metrics: Arc<ThreadMetrics>,
    started: Instant,
    status: StatusCode,
    busy: ActiveExchange,
}

/// The guards of an admitted request, from before it was sent.
pub struct Admitted {
    pub permits: Permits,
    pub flow: Flow,
    pub started: Instant,
    pub busy: ActiveExchange,
    /// Ends when the answer begins.
    pub queued: Queued,
}

// === impl Exchange ===

impl Exchange {
    pub fn new(
        thread: &ThreadProxy,
        admitted: Admitted,
        reservation: Reservation,
        upload: Option<Arc<UploadWatch>>,
        status: StatusCode,
        entry: Option<PendingDecision>,
    ) -> Self {
        let (pool, metrics) = (Arc::clone(&thread.pool), Arc::clone(&thread.metrics));
        let Admitted { permits, started, busy, queued, .. } = admitted;
        drop(queued);
        let reusable = upload.as_ref().is_none_or(|upload| upload.has_ended());
        Self { entry, reusable, permits, reservation, pool, upload, metrics, started, status, busy }
    }

    /// When its request came in.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The answer was passed on whole, and its connection can be used again if it is here.
    pub fn complete(self, connection: Option<Connection>) {
        // One reading of the clock for all that ends here.
        let now = Instant::now();
        let duration = now.saturating_duration_since(self.started);
        self.metrics.answered(self.permits.priority(), self.status, duration);
        if let Some(connection) = connection.filter(|_| self.reusable) {
            self.pool.put_back(self.reservation.upstream().endpoint(), connection, now);
        }
        drop(self.entry);
        self.permits.finish(Outcome::Success);
        self.reservation.complete(now);
        self.busy.end(now);
    }

    /// The exchange is over and its connection can't be used again.
    pub fn close(self) {
        self.complete(None);
    }

    /// The answer broke off on the upstream's side.
    pub fn fail(mut self) {
        self.reservation.failed();
        self.metrics.answered(self.permits.priority(), self.status, self.started.elapsed());
        drop(self.entry);
        self.permits.finish(Outcome::Dropped);
    }

    /// Records the first piece of the response.
    pub fn prefilled(&mut self) {
        self.reservation.prefilled();
    }

    /// When the request last moved, while it is still being sent.
    pub fn upload_progress(&self) -> Option<Instant> {
        let upload = self.upload.as_ref()?;
        (!upload.has_ended()).then(|| upload.last_progress())
    }

    /// The answer is one that can't be passed on.
    pub fn bad_answer(mut self, why: &'static str) -> ProxyError {
        self.reservation.failed();
        let upstream = self.reservation.upstream().name().to_owned();
        let error = ProxyError::BadAnswer { upstream, why };
        drop(self.entry);
        self.permits.finish(Outcome::Dropped);
        error
    }
}
