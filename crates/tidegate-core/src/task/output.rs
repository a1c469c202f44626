use serde::{Deserialize, Serialize};

/// Output stream of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Piece of a task's output. Invalid UTF-8 was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OutputChunk {
    /// Stream it was written to.
    pub stream: OutputStream,
    /// Text.
    pub text: String,
}
