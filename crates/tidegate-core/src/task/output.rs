use serde::{Deserialize, Serialize};

/// Where a task wrote something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
}

/// Something that a task wrote. What is no UTF-8 was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OutputChunk {
    /// Where.
    pub stream: OutputStream,
    /// What.
    pub text: String,
}
