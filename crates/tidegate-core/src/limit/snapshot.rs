use super::LimitMove;

/// State of a [`ConcurrencyLimit`](super::ConcurrencyLimit), for statistics and metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitSnapshot {
    /// Limit that was found, apart from a running experiment.
    pub found: u32,
    /// Limit in force: the found one, the lower level of an experiment, or what the upstream reported.
    pub limit: u32,
    /// Requests at the upstream.
    pub in_flight: u32,
    /// Cause of the last change.
    pub last_move: LimitMove,
    /// Elasticity of throughput that the last experiment measured.
    pub elasticity: Option<f64>,
    /// Typical latency without a queue, in seconds.
    pub baseline_s: Option<f64>,
    /// True while the breaker is open: only probes are sent.
    pub open: bool,
}
