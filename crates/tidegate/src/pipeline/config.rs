use tidegate_core::frame::{FrameLimits, FrameLimitsError};
use tidegate_core::line_protocol::{LineConfig, LineConfigError, LineCutter};
use tidegate_core::signal::{LevelConfig, LevelConfigError};
use tidegate_core::window::{Law, WindowConfig, WindowConfigError};

/// How the pipeline is to be.
#[derive(Clone, Debug)]
pub struct PipelineConfig {
    /// How windows follow load.
    pub law: Law,
    /// Their bounds, and what all may hold together.
    pub windows: WindowConfig,
    /// What a frame may be.
    pub frames: FrameLimits,
    /// How a line becomes records.
    pub lines: LineConfig,
    /// How long a line may be, in bytes.
    pub line_bytes_max: usize,
    /// What senders are told, and when.
    pub levels: LevelConfig,
}

/// A pipeline can't be as it was asked to be.
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
        }
    }
}
