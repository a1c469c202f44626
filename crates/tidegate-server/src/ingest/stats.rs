use serde::Serialize;
use tidegate::pipeline::{PipelineCounts, PipelineSnapshot};

/// The section of `GET /v1/stats` about the ingestion.
#[derive(Clone, Debug, Serialize)]
pub struct IngestStats {
    /// Open connections that send frames.
    pub connections_frames: usize,
    /// Open connections that send lines.
    pub connections_lines: usize,
    /// Connections turned away at the limit.
    pub connections_refused: u64,
    /// True while all its parts run.
    pub up: bool,
    /// Tariffs in force.
    pub tariffs: usize,
    /// Counts since the start.
    #[serde(flatten)]
    pub counts: PipelineCounts,
    /// The windows of the stages, and the signal that senders are given.
    #[serde(flatten)]
    pub pipeline: PipelineSnapshot,
}
