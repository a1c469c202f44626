use super::newline::find_newline;
use super::{LineError, LineFault};
use bytes::{Buf, Bytes};

/// Puts lines together that the network cut.
///
/// Give it what was read with [`push`](Self::push), then take blocks of whole lines with [`next`](Self::next)
/// until there is none. A block is as much as lies in one chunk, not copied: one line would be little to hand
/// on. It holds the chunk it was given and at most one line that has begun.
#[derive(Debug)]
pub struct LineCutter {
    line_bytes_max: usize,
    /// What has come of a line that began in an earlier chunk.
    partial: Vec<u8>,
    chunk: Bytes,
    /// Within a line that is too long, and was told to be.
    skipping: bool,
}

// === impl LineCutter ===

impl LineCutter {
    /// The longest line unless said otherwise.
    pub const LINE_BYTES_MAX: usize = 64 << 10;

    /// For a new connection. A line has at most so many bytes, its newline not counted.
    #[must_use]
    pub fn new(line_bytes_max: usize) -> Self {
        Self { line_bytes_max, partial: Vec::new(), chunk: Bytes::new(), skipping: false }
    }

    /// Takes what was read, cut anywhere and of any size.
    ///
    /// Take all blocks of a chunk before the next one is pushed: otherwise what is left is copied, and both are
    /// held.
    pub fn push(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else if !chunk.is_empty() {
            self.chunk = [&self.chunk[..], &chunk[..]].concat().into();
        }
    }

    /// The next lines, one or more, each with its newline; `None` when more must be pushed first.
    ///
    /// # Errors
    ///
    /// Once for each line that is too long. The next call goes on behind it.
    #[allow(clippy::should_implement_trait, reason = "an iterator that ends would not go on")]
    pub fn next(&mut self) -> Result<Option<Bytes>, LineError> {
        if self.skipping && !self.skip() {
            return Ok(None);
        }
        if self.partial.is_empty() { self.next_block() } else { self.next_joined() }
    }

    /// The last line, if it has no newline. For the end of a connection, after [`next`](Self::next) gave `None`.
    pub fn finish(&mut self) -> Option<Bytes> {
        self.skipping = false;
        let last = std::mem::take(&mut self.partial);
        if last.is_empty() { None } else { Some(last.into()) }
    }

    /// How many bytes it holds: of the chunk, and of the line that has begun.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.partial.capacity() + self.chunk.len()
    }

    /// Drops the rest of a line that is too long. Tells whether its end has come.
    fn skip(&mut self) -> bool {
        let end = find_newline(&self.chunk);
        self.take(end.map_or(self.chunk.len(), |end| end + 1));
        self.skipping = end.is_none();
        !self.skipping
    }

    fn next_block(&mut self) -> Result<Option<Bytes>, LineError> {
        // No line that ends within this is too long, and one that does not is, if there is more than this.
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

    /// The line that began in an earlier chunk.
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

    /// Moves bytes of the chunk to the line that has begun.
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
            // Not only empty: it would keep the whole read alive.
            return std::mem::take(&mut self.chunk);
        }
        let taken = self.chunk.slice(..count);
        self.chunk.advance(count);
        taken
    }
}
