use super::access::{OpenAccess, SenderAccess};
use std::sync::Arc;
use tidegate_core::frame::{FrameLimits, FrameLimitsError};
use tidegate_core::line_protocol::{LineConfig, LineConfigError, LineCutter};
use tidegate_core::signal::{LevelConfig, LevelConfigError};
use tidegate_core::window::{Law, WindowConfig, WindowConfigError};

/// Configuration of a pipeline.
#[derive(Clone, Debug)]
pub struct PipelineConfig {
    /// Control law of the windows.
    pub law: Law,
    /// Bounds of the windows, and the byte budget of all.
    pub windows: WindowConfig,
    /// Limits of frames.
    pub frames: FrameLimits,
    /// Mapping of lines to records.
    pub lines: LineConfig,
    /// Longest line, in bytes.
    pub line_bytes_max: usize,
    /// Thresholds and signals of the backpressure levels.
    pub levels: LevelConfig,
    /// Tokens of senders. Default none: every sender is let in.
    pub access: Arc<dyn SenderAccess>,
}

/// An invalid [`PipelineConfig`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PipelineConfigError {
    /// The windows are out of range.
    #[error("the windows: {0}")]
    Windows(#[from] WindowConfigError),
    /// The frames' limits are out of range.
    #[error("the frames: {0}")]
    Frames(#[from] FrameLimitsError),
    /// Lines can't be read so.
    #[error("the lines: {0}")]
    Lines(#[from] LineConfigError),
    /// The levels are out of order.
    #[error("the levels: {0}")]
    Levels(#[from] LevelConfigError),
}

// === impl PipelineConfig ===

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            law: Law::default(),
            windows: WindowConfig::default(),
            frames: FrameLimits::default(),
            lines: LineConfig::default(),
            line_bytes_max: LineCutter::LINE_BYTES_MAX,
            levels: LevelConfig::default(),
            access: Arc::new(OpenAccess),
        }
    }
}
