use super::request::ForwardedCache;
use super::turn_meter::TurnMeter;
use crate::config::Config;
use crate::gateway::activity::Activity;
use crate::gateway::admin::ControlPlane;
use crate::gateway::decision_log::DecisionRecorder;
use crate::gateway::reserve::ReservedConnection;
use crate::gateway::telemetry::ThreadMetrics;
use crate::gateway::upstream::Fleet;
use crate::http::admission::Admission;
use crate::http::client::{Connector, Pool};
use crate::http::date::DateStamp;
use crate::http::tls::PeerCertificate;
use http::HeaderValue;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tidegate::retry::{BudgetLimits, RetryBudget};
use tidegate::rng::Rng;

/// The proxy of a gateway: what its threads have in common.
#[derive(Clone)]
pub struct Proxy {
    config: Arc<Config>,
    admission: Arc<Admission>,
    fleet: Arc<Fleet>,
    control: Arc<ControlPlane>,
    started: Instant,
    /// This gateway's mark in `Via`, different from any other's.
    via: HeaderValue,
}

/// The proxy on one io thread, with its own connections to upstreams and its own counters.
pub struct ThreadProxy {
    pub(super) config: Arc<Config>,
    pub(super) admission: Arc<Admission>,
    pub(super) fleet: Arc<Fleet>,
    pub(super) control: Arc<ControlPlane>,
    pub(super) via: HeaderValue,
    pub(super) pool: Arc<Pool>,
    pub(super) metrics: Arc<ThreadMetrics>,
    pub(super) date: DateStamp,
    pub(super) recorder: Arc<DecisionRecorder>,
    retries: RetryBudget,
    turns: TurnMeter,
    started: Instant,
}

/// A client's connection, as the proxy knows it.
pub struct ClientContext {
    pub(super) thread: Arc<ThreadProxy>,
    pub(super) activity: Arc<Activity>,
    pub(super) forwarded: ForwardedCache,
    /// The part of the reserve that the connection uses, if it is one beyond the connection limit.
    pub(super) reserved: Option<Arc<ReservedConnection>>,
    /// The certificate that the client has shown.
    pub(super) certificate: Option<PeerCertificate>,
}

// === impl Proxy ===

impl Proxy {
    /// A proxy to this fleet, whose retry budget counts from `started`.
    #[must_use]
    pub fn new(
        config: Arc<Config>,
        admission: Arc<Admission>,
        fleet: Arc<Fleet>,
        control: Arc<ControlPlane>,
        started: Instant,
    ) -> Self {
        let mark = format!("1.1 tidegate-{:08x}", Rng::from_process().next_u64() as u32);
        let via = HeaderValue::from_str(&mark).unwrap_or(HeaderValue::from_static("1.1 tidegate"));
        Self { config, admission, fleet, control, started, via }
    }

    /// The proxy on one thread.
    #[must_use]
    pub fn on_thread(&self, connector: Connector, metrics: &Arc<ThreadMetrics>) -> ThreadProxy {
        let settings = &self.config.proxy;
        let (idle_max, idle_timeout) = (settings.idle_connections_max, settings.idle_timeout);
        let pool = Pool::new(self.fleet.all().len(), connector, idle_max, idle_timeout);
        ThreadProxy {
            config: Arc::clone(&self.config),
            admission: Arc::clone(&self.admission),
            fleet: Arc::clone(&self.fleet),
            control: Arc::clone(&self.control),
            via: self.via.clone(),
            pool: Arc::new(pool),
            metrics: Arc::clone(metrics),
            date: DateStamp::new(SystemTime::now()),
            recorder: Arc::new(DecisionRecorder::new(Arc::clone(self.control.decision_log()))),
            retries: RetryBudget::new(BudgetLimits::default()),
            turns: TurnMeter::new(self.started),
            started: self.started,
        }
    }
}

// === impl ThreadProxy ===

impl ThreadProxy {
    /// The longest that a client may take to send the head of a request.
    #[must_use]
    pub fn header_timeout(&self) -> Duration {
        self.config.listen.header_timeout
    }

    /// Closes connections to upstreams that have been idle for too long.
    pub fn sweep_idle(&self) {
        self.pool.sweep();
    }

    /// Sets the date of responses.
    pub fn refresh_date(&self, now: SystemTime) {
        self.date.refresh(now);
    }

    /// Counts a request, of which the retry budget allows a part.
    pub(super) fn record_request(&self, at: Instant) {
        self.turns.pass(at, self.fleet.monitor());
        self.retries.record_request(at.duration_since(self.started));
    }

    /// Returns true if a failed request may be sent again, and counts the retry.
    pub(super) fn may_retry(&self) -> bool {
        self.retries.try_retry(self.started.elapsed())
    }
}

// === impl ClientContext ===

impl ClientContext {
    /// The context of a connection that was just accepted.
    #[must_use]
    pub fn new(
        thread: Arc<ThreadProxy>,
        peer: SocketAddr,
        secure: bool,
        activity: Arc<Activity>,
    ) -> Self {
        let forwarded = ForwardedCache::new(peer.ip(), secure);
        Self { thread, activity, forwarded, reserved: None, certificate: None }
    }

    /// The same on a connection of the reserve, if it is one.
    #[must_use]
    pub(crate) fn reserved(self, reserved: Option<Arc<ReservedConnection>>) -> Self {
        Self { reserved, ..self }
    }

    /// The same for a client that has shown this certificate, if any.
    #[must_use]
    pub(crate) fn certified(self, certificate: Option<PeerCertificate>) -> Self {
        Self { certificate, ..self }
    }
}
