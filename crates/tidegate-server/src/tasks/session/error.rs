use std::io;
use tidegate::frame::{FrameError, FrameKind};

/// Error that ends a connection of a session.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// The peer did not answer in time.
    #[error("no answer within {0:?}")]
    Timeout(std::time::Duration),
    /// Bytes that are no frame.
    #[error("no frame: {0}; is the peer a Tidegate of this version?")]
    Frame(#[from] FrameError),
    /// A frame whose body is not what its kind says.
    #[error("invalid body of a {kind} frame: {why}")]
    Body {
        /// Kind of the frame.
        kind: FrameKind,
        /// Reason.
        why: String,
    },
    /// A frame that must not come here.
    #[error("unexpected {given} frame; expected {expected}")]
    Unexpected {
        /// Kind of the frame.
        given: FrameKind,
        /// Frames expected.
        expected: &'static str,
    },
    /// The manager refused the worker.
    #[error("the manager refused this worker: {message}")]
    Refused {
        /// Short name of the reason.
        reason: String,
        /// Explanation.
        message: String,
        /// A later try can't succeed either.
        is_final: bool,
    },
}

// === impl SessionError ===

impl SessionError {
    /// An error of a frame's body.
    pub(super) fn body(kind: FrameKind, why: impl ToString) -> Self {
        let why = why.to_string().chars().take(256).collect();
        Self::Body { kind, why }
    }
}
