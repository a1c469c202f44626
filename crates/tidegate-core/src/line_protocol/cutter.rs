use super::newline::find_newline;
use super::{LineError, LineFault};
use bytes::{Buf, Bytes};

/// Splits a stream into blocks of complete lines.
///
/// Feed it with [`push`](Self::push), then take blocks with [`next`](Self::next) until `None`. A block is all
/// complete lines of one chunk, not copied, because a single line is a small unit of work. It holds the last chunk
/// and at most one partial line.
#[derive(Debug)]
pub struct LineCutter {
    line_bytes_max: usize,
    /// Bytes of a line that began in an earlier chunk.
    partial: Vec<u8>,
    chunk: Bytes,
    /// Within a line that is too long and was reported.
    skipping: bool,
}

// === impl LineCutter ===

impl LineCutter {
    /// Default maximum length of a line, in bytes.
    pub const LINE_BYTES_MAX: usize = 64 << 10;

    /// Creates the cutter of a new connection. A line has at most `line_bytes_max` bytes without its newline.
    #[must_use]
    pub fn new(line_bytes_max: usize) -> Self {
        Self { line_bytes_max, partial: Vec::new(), chunk: Bytes::new(), skipping: false }
    }

    /// Adds a chunk, split anywhere and of any size.
    ///
    /// Take all blocks of a chunk before the next one is pushed: otherwise the rest is copied, and both are held.
    pub fn push(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else if !chunk.is_empty() {
            self.chunk = [&self.chunk[..], &chunk[..]].concat().into();
        }
    }

    /// Next block of one or more lines with their newlines, or `None` if more input is needed.
    ///
    /// # Errors
    ///
    /// Once for each line that is too long. The next call continues after it.
    #[allow(clippy::should_implement_trait, reason = "an iterator that ends would not go on")]
    pub fn next(&mut self) -> Result<Option<Bytes>, LineError> {
        if self.skipping && !self.skip() {
            return Ok(None);
        }
        if self.partial.is_empty() { self.next_block() } else { self.next_joined() }
    }

    /// Last line, if it has no newline. Call it at the end of a connection, after [`next`](Self::next) returned
    /// `None`.
    pub fn finish(&mut self) -> Option<Bytes> {
        self.skipping = false;
        let last = std::mem::take(&mut self.partial);
        if last.is_empty() { None } else { Some(last.into()) }
    }

    /// Bytes held: the chunk, and the partial line.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity() + self.chunk.len()
    }

    /// Skips the rest of a line that is too long. Returns true once its end was found.
    fn skip(&mut self) -> bool {
        let end = find_newline(&self.chunk);
        self.take(end.map_or(self.chunk.len(), |end| end + 1));
        self.skipping = end.is_none();
        !self.skipping
    }

    fn next_block(&mut self) -> Result<Option<Bytes>, LineError> {
        // A line that ends within this window is not too long; if the window holds no newline and is full, the
        // line is.
        let window = &self.chunk[..self.chunk.len().min(self.line_bytes_max + 1)];
        match window.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => Ok(Some(self.take(end + 1))),
            None if window.len() > self.line_bytes_max => Err(self.too_long()),
            None => {
                self.keep(self.chunk.len());
                Ok(None)
            }
        }
    }

    /// Completes the line that began in an earlier chunk.
    fn next_joined(&mut self) -> Result<Option<Bytes>, LineError> {
        let end = find_newline(&self.chunk);
        let more = end.unwrap_or(self.chunk.len());
        if self.partial.len() + more > self.line_bytes_max {
            return Err(self.too_long());
        }
        self.keep(end.map_or(more, |end| end + 1));
        Ok(end.map(|_| std::mem::take(&mut self.partial).into()))
    }

    fn too_long(&mut self) -> LineError {
        let beginning: Vec<u8> =
            self.partial.iter().chain(&self.chunk).take(100).copied().collect();
        self.partial = Vec::new();
        self.skipping = true;
        let error = LineError::new(LineFault::LineTooLong, &beginning, 0);
        LineError { column: self.line_bytes_max + 1, ..error }
    }

    /// Moves bytes of the chunk to the partial line.
    fn keep(&mut self, count: usize) {
        let length = self.partial.len() + count;
        if length > self.partial.capacity() {
            let room = (2 * length).min(self.line_bytes_max + 1).max(length);
            self.partial.reserve_exact(room - self.partial.len());
        }
        let taken = self.take(count);
        self.partial.extend_from_slice(&taken);
    }

    fn take(&mut self, count: usize) -> Bytes {
        if count == self.chunk.len() {
            // Released and not only empty: a slice would keep the whole read alive.
            return std::mem::take(&mut self.chunk);
        }
        let taken = self.chunk.slice(..count);
        self.chunk.advance(count);
        taken
    }
}
