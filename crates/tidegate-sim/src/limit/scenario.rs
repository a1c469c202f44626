use super::ServiceTime;
use tidegate_core::limit::LimitGoal;

/// A scenario of one upstream behind gateways. Complete: a run uses nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitScenario {
    /// The name in tables.
    pub name: &'static str,
    /// Its description, in a line.
    pub about: &'static str,
    /// The server.
    pub server: ServerModel,
    /// The work of a request.
    pub service: ServiceTime,
    /// Time on the network that occupies no slot, in seconds.
    pub network_s: f64,
    /// Offered requests per second, from when in seconds.
    pub rates: Vec<(f64, f64)>,
    /// Requests that arrive together.
    pub burst: u32,
    /// Gateways in front of the server. Each offers its part of the rate.
    pub gateways: u32,
    /// True if each gateway knows how many they are.
    pub gateways_known: bool,
    /// The goal of the limit.
    pub goal: LimitGoal,
    /// Changes of the server, from when in seconds.
    pub changes: Vec<(f64, ServerChange)>,
    /// Time after which a gateway gives a request up, in seconds. The server goes on with it.
    pub timeout_s: Option<f64>,
    /// Time after arrival at which a client leaves, in seconds. The server goes on with its request.
    pub patience_s: Option<f64>,
    /// A response that comes later after arrival is not goodput, in seconds.
    pub deadline_s: f64,
    /// Longest wait in a gateway's queue, in seconds.
    pub wait_max_s: f64,
    /// The best static limits of all gateways together, from when in seconds: what the oracle uses.
    pub best: Vec<(f64, u32)>,
    /// The duration in seconds.
    pub duration_s: f64,
    /// The time from which it is judged, in seconds.
    pub judged_from_s: f64,
    /// The step after which settling is measured, in seconds.
    pub step_s: Option<f64>,
    /// The figures that it is held to.
    pub judgement: Judgement,
}

/// Class of figures that a scenario is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Slots under overload: goodput, the limit and latency.
    HardSlots,
    /// Overload of another server: goodput.
    Overload,
    /// A goal's point: goodput and the limit.
    Goal,
    /// Load below capacity: everybody is served.
    Calm,
}

/// Model of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServerModel {
    /// A fixed number of requests at once, each at full speed, and a queue.
    Slots {
        /// Requests at once.
        slots: u32,
        /// Requests in its queue; further ones are refused. `None`: no bound.
        queue: Option<u32>,
    },
    /// Slots and a queue without a bound; with more requests in both than this, all work takes longer, by the
    /// square of the excess.
    Thrashing {
        /// Requests at once.
        slots: u32,
        /// The most requests in slots and queue without harm.
        above: u32,
    },
    /// All requests at once, each slower with every other: the time is work × (fixed + per_request × number).
    Batching {
        /// Factor of a request alone.
        fixed: f64,
        /// Added factor of each request.
        per_request: f64,
    },
    /// All requests at full speed up to a knee; beyond it throughput falls.
    Collapsing {
        /// Number at which throughput is greatest.
        knee: u32,
        /// Loss of throughput: at twice the knee it is 1/(1 + steepness) of the best.
        steepness: f64,
    },
}

/// Change of a server while it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServerChange {
    /// Number of slots from now on.
    Slots(u32),
    /// Work takes so many times as long.
    Slowness(f64),
    /// Time on the network, in seconds.
    Network(f64),
    /// The server stops, and requests in it are lost.
    Stop,
    /// The server accepts requests again.
    Start,
}

// === impl LimitScenario ===

impl LimitScenario {
    /// Mean latency of a request alone, in seconds.
    #[must_use]
    pub fn unloaded_s(&self) -> f64 {
        self.service.mean_s() / self.server.speed(1) + self.network_s
    }
}

// === impl ServerModel ===

impl ServerModel {
    /// Speed of each of so many requests in a server without slots.
    pub(super) fn speed(&self, requests: usize) -> f64 {
        let n = requests as f64;
        match *self {
            Self::Slots { .. } | Self::Thrashing { .. } => 1.0,
            Self::Batching { fixed, per_request } => 1.0 / (fixed + per_request * n),
            Self::Collapsing { knee, steepness } => {
                let knee = f64::from(knee);
                if n <= knee { 1.0 } else { (knee / n) / (1.0 + steepness * (n - knee) / knee) }
            }
        }
    }
}
