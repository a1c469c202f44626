use crate::config::Config;
use crate::gateway::decision_log::{DecisionLog, DecisionSource};
use crate::gateway::telemetry::{AlertBoard, IoThreads};
use crate::gateway::upstream::{Fleet, SlowModels};
use crate::http::admission::Admission;
use crate::http::error_response::RejectionPolicy;
use crate::http::tls::TlsPort;
use crate::http::{Caller, Extension, Phase, Port};
use std::sync::Arc;
use tokio::sync::watch;

/// The gateway as operators see it: health, metrics, statistics, thresholds and decisions.
pub struct ControlPlane {
    pub(super) config: Arc<Config>,
    pub(super) admission: Arc<Admission>,
    pub(super) fleet: Arc<Fleet>,
    pub(super) threads: Arc<IoThreads>,
    pub(super) alerts: Arc<AlertBoard>,
    pub(super) slow: Arc<SlowModels>,
    pub(super) decisions: DecisionSource,
    pub(super) node: NodeParts,
    phase: watch::Receiver<Phase>,
}

/// The parts of a node beside its gateway, for which the gateway's ports answer too. None by default.
#[derive(Clone, Default)]
pub struct NodeParts {
    /// The parts, in the order in which they write metrics.
    pub extensions: Vec<Arc<dyn Extension>>,
    /// Marks the upstreams as the mocks of a demonstration.
    pub demo: bool,
    /// TLS of ports, for their metrics.
    pub(crate) tls: Vec<Arc<TlsPort>>,
}

// === impl ControlPlane ===

impl ControlPlane {
    /// The control plane of these parts.
    #[must_use]
    pub fn new(
        config: Arc<Config>,
        admission: Arc<Admission>,
        fleet: Arc<Fleet>,
        threads: Arc<IoThreads>,
        phase: watch::Receiver<Phase>,
        node: NodeParts,
    ) -> Self {
        let decisions = DecisionSource {
            log: Arc::new(DecisionLog::default()),
            config: Arc::clone(&config),
            admission: Arc::clone(&admission),
            phase: phase.clone(),
        };
        let (alerts, slow) = (Arc::default(), Arc::default());
        Self { config, admission, fleet, threads, alerts, slow, decisions, node, phase }
    }

    /// The log of decisions.
    #[must_use]
    pub fn decision_log(&self) -> &Arc<DecisionLog> {
        &self.decisions.log
    }

    /// Alerts about admission.
    #[must_use]
    pub fn alerts(&self) -> &Arc<AlertBoard> {
        &self.alerts
    }

    /// Alerts about slow models.
    #[must_use]
    pub fn slow(&self) -> &Arc<SlowModels> {
        &self.slow
    }

    /// Returns true if the upstreams are the mocks of a demonstration.
    #[must_use]
    pub fn is_demo(&self) -> bool {
        self.node.demo
    }

    /// The part of the node that answers this path, if one does.
    #[must_use]
    pub fn extension(&self, path: &str) -> Option<&dyn Extension> {
        let owner = self.node.extensions.iter().find(|extension| extension.owns(path));
        owner.map(|extension| &**extension)
    }

    /// The circumstances of a request on this port.
    #[must_use]
    pub fn caller(&self, port: Port) -> Caller<'_> {
        let phase = self.phase.clone();
        Caller { admission: &self.admission, policy: self.rejection_policy(), phase, port }
    }

    /// Settings of responses to refused requests.
    #[must_use]
    pub fn rejection_policy(&self) -> RejectionPolicy {
        RejectionPolicy {
            overload_status: self.config.routing.overload_status,
            exposed: self.admission.is_exposed(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.borrow()
    }
}
