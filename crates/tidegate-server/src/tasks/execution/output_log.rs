use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate::task::{OutputChunk, OutputStream};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Largest chunk that joins several writes to one stream. Without joining, a task that writes byte by byte costs
/// thirty times the memory of its output.
const JOINED_BYTES_MAX: usize = 4 << 10;

/// Output of an execution so far, within a bound. An offset is the count of bytes before it.
#[derive(Debug)]
pub struct OutputLog {
    inner: Mutex<Inner>,
    bytes_max: usize,
    changed: Notify,
}

/// Output after an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPage {
    /// Text after the offset.
    pub chunks: Vec<OutputChunk>,
    /// Offset of the next page.
    pub next: u64,
    /// The limit cut the output.
    pub cut: bool,
}

#[derive(Debug, Default)]
struct Inner {
    pieces: Vec<Piece>,
    bytes: usize,
    cut: bool,
    closed: bool,
    /// First bytes of a character whose rest is not yet written, by stream.
    tails: [Vec<u8>; 2],
}

#[derive(Debug)]
struct Piece {
    /// Bytes before it.
    from: usize,
    chunk: OutputChunk,
}

// === impl OutputLog ===

impl OutputLog {
    /// An empty log for at most `bytes_max` bytes of text.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { inner: Mutex::default(), bytes_max, changed: Notify::new() }
    }

    /// Appends bytes. False when the limit is reached; the part that fits is stored.
    pub fn write(&self, stream: OutputStream, bytes: &[u8]) -> bool {
        let mut inner = self.lock();
        if inner.cut || inner.closed {
            return false;
        }
        let mut tail = std::mem::take(inner.tail(stream));
        let joined = match tail.is_empty() {
            true => bytes,
            false => {
                tail.extend_from_slice(bytes);
                &tail
            }
        };
        let rest = inner.decode(stream, joined, self.bytes_max);
        *inner.tail(stream) = rest.to_vec();
        let below_limit = !inner.cut;
        drop(inner);
        self.changed.notify_waiters();
        below_limit
    }

    /// Appends a line of the executor's own to a stream, on a line by itself. Omitted when it does not fit: a note
    /// must not cut a task's output.
    pub fn note(&self, stream: OutputStream, line: &str) {
        let mut inner = self.lock();
        let line = match inner.is_within_line(stream) {
            true => format!("\n{line}"),
            false => line.to_owned(),
        };
        if inner.cut || inner.closed || line.len() > self.bytes_max - inner.bytes {
            return;
        }
        inner.push(stream, &line, self.bytes_max);
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Refuses further writes. An unfinished character becomes U+FFFD.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            if !std::mem::take(inner.tail(stream)).is_empty() {
                inner.push(stream, "\u{FFFD}", self.bytes_max);
            }
        }
    }

    /// Output after an offset.
    #[must_use]
    pub fn page_after(&self, offset: u64) -> OutputPage {
        let inner = self.lock();
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let first = inner.pieces.partition_point(|piece| piece.end() <= offset);
        let chunks = inner.pieces[first..].iter().map(|piece| piece.after(offset)).collect();
        OutputPage { chunks, next: inner.bytes as u64, cut: inner.cut }
    }

    /// True when the limit cut the output.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.lock().cut
    }

    /// Drops the stored text to free memory, and marks the output as cut.
    pub fn discard(&self) {
        let mut inner = self.lock();
        inner.cut |= !inner.pieces.is_empty();
        inner.pieces = Vec::new();
    }

    /// Bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Wakes all waiters of [`changed`](Self::changed).
    pub fn notify(&self) {
        self.changed.notify_waiters();
    }

    /// Waits for the next write or [`notify`](Self::notify).
    pub fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // No holder panics; if one did, the pieces would still be valid text.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Inner ===

impl Inner {
    fn tail(&mut self, stream: OutputStream) -> &mut Vec<u8> {
        match stream {
            OutputStream::Stdout => &mut self.tails[0],
            OutputStream::Stderr => &mut self.tails[1],
        }
    }

    /// True when the last line of a stream has no newline yet.
    fn is_within_line(&mut self, stream: OutputStream) -> bool {
        let last = self.pieces.iter().rev().find(|piece| piece.chunk.stream == stream);
        let open = last.is_some_and(|piece| !piece.chunk.text.ends_with('\n'));
        open || !self.tail(stream).is_empty()
    }

    /// Stores the text in the bytes, and returns the first bytes of an incomplete character.
    fn decode<'a>(
        &mut self,
        stream: OutputStream,
        mut bytes: &'a [u8],
        bytes_max: usize,
    ) -> &'a [u8] {
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(text) => {
                    self.push(stream, text, bytes_max);
                    return &[];
                }
                Err(error) => error,
            };
            let (good, bad) = bytes.split_at(error.valid_up_to());
            self.push(stream, std::str::from_utf8(good).unwrap_or_default(), bytes_max);
            match error.error_len() {
                _ if self.cut => return &[],
                None => return bad,
                Some(wrong) => {
                    self.push(stream, "\u{FFFD}", bytes_max);
                    bytes = &bad[wrong..];
                }
            }
        }
    }

    fn push(&mut self, stream: OutputStream, text: &str, bytes_max: usize) {
        let room = bytes_max - self.bytes;
        self.cut |= text.len() > room;
        let text = &text[..floor_char(text, room)];
        if text.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some(last)
                if last.chunk.stream == stream
                    && last.chunk.text.len() + text.len() <= JOINED_BYTES_MAX =>
            {
                last.chunk.text.push_str(text);
            }
            _ => {
                let chunk = OutputChunk { stream, text: text.to_owned() };
                self.pieces.push(Piece { from: self.bytes, chunk });
            }
        }
        self.bytes += text.len();
    }
}

// === impl Piece ===

impl Piece {
    fn end(&self) -> usize {
        self.from + self.chunk.text.len()
    }

    fn after(&self, offset: usize) -> OutputChunk {
        let text = &self.chunk.text;
        let skipped = floor_char(text, offset.saturating_sub(self.from));
        OutputChunk { stream: self.chunk.stream, text: text[skipped..].to_owned() }
    }
}

/// Last character boundary at or before `at`.
#[must_use]
pub fn floor_char(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use OutputStream::{Stderr, Stdout};

    fn texts(log: &OutputLog, offset: u64) -> Vec<(OutputStream, String)> {
        log.page_after(offset).chunks.into_iter().map(|chunk| (chunk.stream, chunk.text)).collect()
    }

    #[test]
    fn a_character_split_between_writes_is_joined() {
        let log = OutputLog::new(100);
        let smile = "😀".as_bytes();
        assert!(log.write(Stdout, &smile[..1]));
        assert!(log.write(Stderr, &smile[..2]));
        assert!(log.write(Stdout, &smile[1..3]));
        assert_eq!(log.bytes(), 0, "not a whole one yet");
        assert!(log.write(Stdout, &smile[3..]));
        assert!(log.write(Stderr, &smile[2..]));
        assert_eq!(texts(&log, 0), [(Stdout, "😀".to_owned()), (Stderr, "😀".to_owned())]);
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        let log = OutputLog::new(100);
        assert!(log.write(Stdout, b"a\xFFb\xC3"));
        assert_eq!(texts(&log, 0), [(Stdout, "a\u{FFFD}b".to_owned())]);
        log.close();
        assert_eq!(texts(&log, 0), [(Stdout, "a\u{FFFD}b\u{FFFD}".to_owned())]);
    }

    #[test]
    fn nothing_is_stored_beyond_the_limit_and_no_character_is_split() {
        let log = OutputLog::new(4);
        assert!(log.write(Stdout, "aé".as_bytes()));
        assert!(!log.write(Stderr, "é".as_bytes()), "one byte is left, and two are needed");
        assert!(!log.write(Stdout, b"b"));
        assert_eq!(texts(&log, 0), [(Stdout, "aé".to_owned())]);
        assert!(log.is_cut() && log.page_after(0).cut);
        let exact = OutputLog::new(2);
        assert!(exact.write(Stdout, b"ab"), "exactly the limit fits");
        assert!(!exact.is_cut());
    }

    #[test]
    fn a_note_has_its_own_line_and_never_cuts_the_output() {
        let log = OutputLog::new(20);
        log.note(Stderr, "first\n");
        assert!(log.write(Stderr, b"half"));
        log.note(Stderr, "second\n");
        log.note(Stderr, "longer than what is left\n");
        assert_eq!(texts(&log, 0), [(Stderr, "first\nhalf\nsecond\n".to_owned())]);
        assert!(!log.is_cut() && log.write(Stdout, b"x"));
    }

    #[test]
    fn a_reader_gets_each_byte_once() {
        let log = OutputLog::new(100);
        assert!(log.write(Stdout, b"one "));
        let next = log.page_after(0).next;
        assert!(log.write(Stdout, b"two"));
        assert!(log.write(Stderr, b"!"));
        assert_eq!(texts(&log, next), [(Stdout, "two".to_owned()), (Stderr, "!".to_owned())]);
        let next = log.page_after(next).next;
        assert_eq!(texts(&log, next), []);
        assert_eq!(texts(&log, u64::MAX), [], "an offset beyond the end");
    }
}
