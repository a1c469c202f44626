use super::UpstreamShare;
use crate::config::UpstreamTarget;
use crate::http::client::{ConnectError, Endpoint};
use crate::http::{Histogram, HistogramSnapshot};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate::routing::{
    FlapLog, HeldChanges, UpstreamId, UpstreamLimit, UpstreamLoad, WorkerMonitor,
};

/// One server behind the gateway, as all threads see it.
#[derive(Debug)]
pub struct Upstream {
    endpoint: Endpoint,
    id: UpstreamId,
    models_are_given: bool,
    finds_limit: bool,
    share: UpstreamShare,
    monitor: Arc<WorkerMonitor>,
    sent: AtomicU64,
    failed: AtomicU64,
    repeated: AtomicU64,
    response_start: Histogram,
    /// True while its metrics page reports its load; its response headers are then not read.
    scraped: AtomicBool,
    /// The source of its load.
    source: Mutex<Source>,
    changes: Mutex<Changes>,
}

/// Changes between up and down, for the log.
#[derive(Debug)]
struct Changes {
    is_up: bool,
    log: FlapLog,
}

/// The source of an upstream's load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The kind of server, by its metrics; `unknown` until it was recognised.
    pub kind: &'static str,
    /// Why its metrics could not be read the last time, if they could not.
    pub problem: Option<String>,
    /// True if its responses carry ORCA headers.
    pub orca: bool,
}

/// A snapshot of one upstream.
#[derive(Clone, Debug, Serialize)]
pub struct UpstreamStats {
    /// `host:port`.
    pub name: String,
    /// False from a failed connect until the next one that works.
    pub up: bool,
    /// Requests with it now.
    pub in_flight: u64,
    /// Requests sent to it since the start.
    pub sent: u64,
    /// Requests to it that failed since the start: no connection, a reset, a timeout.
    pub failed: u64,
    /// Requests that broke off at it and were sent again since the start.
    pub retried: u64,
    /// The source of its load.
    pub load_source: Source,
    /// Its load.
    pub load: UpstreamLoad,
    /// Time to the heads of its responses, for metrics.
    #[serde(skip)]
    pub response_start: HistogramSnapshot,
}

// === impl Upstream ===

impl Upstream {
    pub(super) fn new(
        index: usize,
        target: &UpstreamTarget,
        monitor: &Arc<WorkerMonitor>,
        limit: UpstreamLimit,
        share: UpstreamShare,
    ) -> Result<Self, http::uri::InvalidUri> {
        Ok(Self {
            endpoint: Endpoint::new(index, target)?,
            id: monitor.add_upstream_with_limit(&target.name, target.models.as_deref(), limit),
            models_are_given: target.models.is_some(),
            finds_limit: matches!(limit, UpstreamLimit::Auto(_)),
            share,
            monitor: Arc::clone(monitor),
            sent: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            response_start: Histogram::default(),
            scraped: AtomicBool::new(false),
            source: Mutex::new(Source { kind: "unknown", ..Source::default() }),
            changes: Mutex::new(Changes { is_up: true, log: FlapLog::default() }),
        })
    }

    /// Records whether a connection could be made, and logs it when it is news and the upstream does not flap.
    pub fn note(&self, failure: Option<&ConnectError>) {
        let is_up = failure.is_none();
        if !self.monitor.set_up(self.id, is_up) {
            return;
        }
        {
            let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            changes.is_up = is_up;
            if !changes.log.change(self.monitor.now()) {
                return;
            }
        }
        match failure {
            None => tracing::info!(upstream = %self.name(), "upstream is up"),
            Some(error) => tracing::warn!(upstream = %self.name(), %error, "upstream is down"),
        }
    }

    /// Sums up changes that were not logged, if it is time to. Call it a few times a second.
    pub fn log_flapping(&self) {
        let now = self.monitor.now();
        let (is_up, held) = {
            let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            (changes.is_up, changes.log.summary(now))
        };
        if let Some(HeldChanges { changes, since }) = held {
            let seconds = now.saturating_sub(since).as_secs();
            let state = if is_up { "up" } else { "down" };
            let upstream = self.name();
            tracing::warn!(upstream, changes, seconds, state, "upstream flaps between up and down");
        }
    }

    /// `host:port`, as labels and responses show it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.endpoint.name
    }

    /// The server's address.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The identity that the monitor knows it by.
    #[must_use]
    pub fn id(&self) -> UpstreamId {
        self.id
    }

    /// Returns true if its models were configured; otherwise the gateway asks it for them.
    #[must_use]
    pub fn has_configured_models(&self) -> bool {
        self.models_are_given
    }

    /// Returns true if its concurrency limit is found, for which its reports count.
    #[must_use]
    pub fn finds_limit(&self) -> bool {
        self.finds_limit
    }

    /// The part of the admission limits that its requests may hold.
    #[must_use]
    pub fn share(&self) -> &UpstreamShare {
        &self.share
    }

    /// Load of all upstreams.
    #[must_use]
    pub fn monitor(&self) -> &WorkerMonitor {
        &self.monitor
    }

    /// Counts a request that is about to be sent.
    pub fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the time from a request to the head of its response.
    pub fn record_response_start(&self, after: Duration) {
        self.response_start.record(after);
    }

    /// Counts a request that failed.
    pub fn count_failure(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that broke off here and is sent again.
    pub fn count_repeat(&self) {
        self.repeated.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true while its metrics page reports its load.
    #[must_use]
    pub fn is_scraped(&self) -> bool {
        self.scraped.load(Ordering::Relaxed)
    }

    /// Records that its metrics page reports its load, or does not.
    pub fn set_scraped(&self, told: bool) {
        self.scraped.store(told, Ordering::Relaxed);
    }

    /// Changes what is known of how it tells its load. Answers whether that is news.
    pub fn learn(&self, change: impl FnOnce(&mut Source)) -> bool {
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        let before = source.clone();
        change(&mut source);
        *source != before
    }

    /// The source of its load.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A snapshot of it.
    #[must_use]
    pub fn stats(&self, load: UpstreamLoad) -> UpstreamStats {
        let mut response_start = HistogramSnapshot::default();
        self.response_start.add_to(&mut response_start);
        UpstreamStats {
            response_start,
            name: self.name().to_owned(),
            up: load.up,
            in_flight: load.in_flight,
            sent: self.sent.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            retried: self.repeated.load(Ordering::Relaxed),
            load_source: self.source(),
            load,
        }
    }
}
