use super::{ConnectError, Line};
use crate::config::{Scheme, UpstreamTarget};
use http::uri::Authority;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tidegate::outbox::DestinationQueueStats;
use tidegate::routing::{WorkerId, WorkerMonitor, WorkerStats};

/// One server behind the gateway, as all threads see it.
#[derive(Debug)]
pub struct Upstream {
    /// Its place in the fleet.
    pub index: usize,
    /// `host:port`, as labels and answers show it.
    pub name: String,
    /// What is spoken with it.
    pub scheme: Scheme,
    /// Where its name is looked up.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// For the `:authority` or, when so configured, the `Host` of what is sent to it.
    pub authority: Authority,
    /// Its name to the monitor.
    pub worker: WorkerId,
    /// Whether its models were configured; otherwise it is asked for them.
    pub models_are_given: bool,
    /// Who waits for it.
    pub line: Arc<Line>,
    monitor: Arc<WorkerMonitor>,
    sent: AtomicU64,
    failed: AtomicU64,
    repeated: AtomicU64,
    /// Whether its metrics tell its load; then its answers' headers are not asked, or two would speak for one.
    scraped: AtomicBool,
    /// How its load is learned, as was found out.
    source: Mutex<Source>,
}

/// How an upstream tells its load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The kind of server, by its metrics; `unknown` until it was recognised.
    pub kind: &'static str,
    /// Why its metrics could not be read the last time, if they could not.
    pub problem: Option<String>,
    /// Whether its answers carry ORCA headers.
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
    /// Its outbox.
    pub outbox: DestinationQueueStats,
    /// How its load is learned.
    pub load_source: Source,
    /// What is known of its load.
    pub load: WorkerStats,
}

// === impl Upstream ===

impl Upstream {
    pub(super) fn new(
        index: usize,
        target: &UpstreamTarget,
        monitor: &Arc<WorkerMonitor>,
        line: Line,
    ) -> Result<Self, http::uri::InvalidUri> {
        Ok(Self {
            index,
            name: target.name.clone(),
            scheme: target.scheme,
            host: target.host.clone(),
            port: target.port,
            authority: target.name.parse()?,
            worker: monitor.add_worker(&target.name, target.models.as_deref()),
            models_are_given: target.models.is_some(),
            line: Arc::new(line),
            monitor: Arc::clone(monitor),
            sent: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            scraped: AtomicBool::new(false),
            source: Mutex::new(Source { kind: "unknown", ..Source::default() }),
        })
    }

    /// Records whether a connection could be made, and logs it when it is news.
    pub fn note(&self, failure: Option<&ConnectError>) {
        if !self.monitor.set_up(self.worker, failure.is_none()) {
            return;
        }
        match failure {
            None => tracing::info!(upstream = %self.name, "upstream is up"),
            Some(error) => tracing::warn!(upstream = %self.name, %error, "upstream is down"),
        }
    }

    /// What is known of all upstreams' load.
    #[must_use]
    pub fn monitor(&self) -> &WorkerMonitor {
        &self.monitor
    }

    /// Counts a request that is about to be sent.
    pub fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that failed.
    pub fn count_failure(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that broke off here and is sent again.
    pub fn count_repeat(&self) {
        self.repeated.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether its metrics tell its load.
    #[must_use]
    pub fn is_scraped(&self) -> bool {
        self.scraped.load(Ordering::Relaxed)
    }

    /// Says whether its metrics tell its load.
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

    /// How it tells its load.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A snapshot of its outbox, while so many requests are with it.
    #[must_use]
    pub fn outbox(&self, in_flight: u64) -> DestinationQueueStats {
        let in_flight = usize::try_from(in_flight).unwrap_or(usize::MAX);
        let (queue, mut sender) = self.line.stats(in_flight);
        sender.total_failed = self.failed.load(Ordering::Relaxed);
        sender.total_retried = self.repeated.load(Ordering::Relaxed);
        DestinationQueueStats {
            destination_host: self.host.clone(),
            destination_port: self.port,
            queue,
            sender,
        }
    }

    /// What there is to know of it.
    #[must_use]
    pub fn stats(&self, load: WorkerStats) -> UpstreamStats {
        UpstreamStats {
            name: self.name.clone(),
            up: load.up,
            in_flight: load.in_flight,
            sent: self.sent.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            outbox: self.outbox(load.in_flight),
            load_source: self.source(),
            load,
        }
    }
}
