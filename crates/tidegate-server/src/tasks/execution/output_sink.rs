use super::output_log::OutputLog;
use std::sync::Arc;
use tidegate::task::OutputStream;

/// Receiver of an execution's output. Cheap to clone; the executor sets its limit.
#[derive(Clone, Debug)]
pub struct OutputSink {
    log: Arc<OutputLog>,
}

// === impl OutputSink ===

impl OutputSink {
    /// A sink that stores at most `bytes_max` bytes of text.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { log: Arc::new(OutputLog::new(bytes_max)) }
    }

    /// Appends bytes to a stream. False when the limit is reached: the runner must then stop the task with
    /// [`OutputLimit`](tidegate::task::EndReason::OutputLimit). The part that fits is stored.
    ///
    /// A character may be split anywhere between two writes to the same stream.
    #[must_use]
    pub fn write(&self, stream: OutputStream, bytes: &[u8]) -> bool {
        self.log.write(stream, bytes)
    }

    /// Appends a line of the executor's own, if there is room for it.
    pub fn note(&self, stream: OutputStream, line: &str) {
        self.log.note(stream, line);
    }

    /// Text of one stream so far.
    #[must_use]
    pub fn text(&self, stream: OutputStream) -> String {
        let chunks = self.log.page_after(0).chunks.into_iter();
        chunks.filter(|chunk| chunk.stream == stream).map(|chunk| chunk.text).collect()
    }

    /// The log behind this sink, for readers.
    #[must_use]
    pub fn log(&self) -> &OutputLog {
        &self.log
    }
}
