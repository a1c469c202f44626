use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate::task::{OutputChunk, OutputStream};
use tokio::sync::Notify;

/// Up to here, writes to the same stream are put together. A task that writes byte by byte would otherwise cost
/// thirty times what it wrote.
const JOINED_BYTES_MAX: usize = 4 << 10;

/// What an execution has written so far, within a bound. A place in it is the count of bytes before it.
#[derive(Debug)]
pub(super) struct OutputLog {
    inner: Mutex<Inner>,
    bytes_max: usize,
    /// Somebody may want to look again.
    pub(super) changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    pieces: Vec<Piece>,
    bytes: usize,
    cut: bool,
    closed: bool,
    /// The beginning of a character whose end has yet to be written, by stream.
    tails: [Vec<u8>; 2],
}

#[derive(Debug)]
struct Piece {
    /// The bytes before it.
    from: usize,
    chunk: OutputChunk,
}

// === impl OutputLog ===

impl OutputLog {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { inner: Mutex::default(), bytes_max, changed: Notify::new() }
    }

    /// False when the limit is reached. What fits is kept.
    pub(super) fn write(&self, stream: OutputStream, bytes: &[u8]) -> bool {
        let mut inner = self.lock();
        if inner.cut || inner.closed {
            return false;
        }
        let mut whole = std::mem::take(inner.tail(stream));
        let joined = match whole.is_empty() {
            true => bytes,
            false => {
                whole.extend_from_slice(bytes);
                &whole
            }
        };
        let rest = inner.decode(stream, joined, self.bytes_max);
        *inner.tail(stream) = rest.to_vec();
        let goes_on = !inner.cut;
        drop(inner);
        self.changed.notify_waiters();
        goes_on
    }

    /// Nothing more is taken: characters that were not finished won't be.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            if !std::mem::take(inner.tail(stream)).is_empty() {
                inner.push(stream, "\u{FFFD}", self.bytes_max);
            }
        }
    }

    /// What was written after that place, the place after it, and whether there would have been more.
    pub(super) fn after(&self, place: u64) -> (Vec<OutputChunk>, u64, bool) {
        let inner = self.lock();
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let first = inner.pieces.partition_point(|piece| piece.end() <= place);
        let news = inner.pieces[first..].iter().map(|piece| piece.after(place)).collect();
        (news, inner.bytes as u64, inner.cut)
    }

    /// Gives up what is held, to make room; what was written is told to have been cut.
    pub(super) fn forget(&self) {
        let mut inner = self.lock();
        inner.cut |= !inner.pieces.is_empty();
        inner.pieces = Vec::new();
    }

    /// How much was written.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing that holds it panics; if it did, what was written would still be text.
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

    /// Keeps the text in the bytes, and gives back the beginning of a character that is not complete.
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

    fn after(&self, place: usize) -> OutputChunk {
        let text = &self.chunk.text;
        let skipped = floor_char(text, place.saturating_sub(self.from));
        OutputChunk { stream: self.chunk.stream, text: text[skipped..].to_owned() }
    }
}

/// The last place at or before `at` that is not inside of a character.
pub(super) fn floor_char(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use OutputStream::{Stderr, Stdout};

    fn texts(log: &OutputLog, place: u64) -> Vec<(OutputStream, String)> {
        log.after(place).0.into_iter().map(|chunk| (chunk.stream, chunk.text)).collect()
    }

    #[test]
    fn characters_that_are_cut_between_writes_come_whole() {
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
    fn what_is_no_text_is_replaced() {
        let log = OutputLog::new(100);
        assert!(log.write(Stdout, b"a\xFFb\xC3"));
        assert_eq!(texts(&log, 0), [(Stdout, "a\u{FFFD}b".to_owned())]);
        log.close();
        assert_eq!(texts(&log, 0), [(Stdout, "a\u{FFFD}b\u{FFFD}".to_owned())]);
    }

    #[test]
    fn nothing_is_kept_beyond_the_limit_and_nothing_is_cut_in_two() {
        let log = OutputLog::new(4);
        assert!(log.write(Stdout, "aé".as_bytes()));
        assert!(!log.write(Stderr, "é".as_bytes()), "one byte is left, and two are needed");
        assert!(!log.write(Stdout, b"b"));
        assert_eq!(texts(&log, 0), [(Stdout, "aé".to_owned())]);
        assert!(log.after(0).2, "and that is told");
        let exact = OutputLog::new(2);
        assert!(exact.write(Stdout, b"ab"), "as much as may be is not too much");
        assert!(!exact.after(0).2);
    }

    #[test]
    fn a_reader_gets_each_byte_once() {
        let log = OutputLog::new(100);
        assert!(log.write(Stdout, b"one "));
        let (_, next, _) = log.after(0);
        assert!(log.write(Stdout, b"two"));
        assert!(log.write(Stderr, b"!"));
        assert_eq!(texts(&log, next), [(Stdout, "two".to_owned()), (Stderr, "!".to_owned())]);
        let (_, next, _) = log.after(next);
        assert_eq!(texts(&log, next), []);
        assert_eq!(texts(&log, u64::MAX), [], "a place that is not there yet");
    }
}
