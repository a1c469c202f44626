use super::bounds::LINE_BYTES_MAX;
use super::error::ProgressError;

/// Splits a stream into lines, of which it stores at most one.
#[derive(Debug, Default)]
pub struct ProgressLines {
    /// Beginning of an incomplete line.
    partial: Vec<u8>,
    /// The current line is too long: the rest of it is discarded.
    too_long: bool,
}

// === impl ProgressLines ===

impl ProgressLines {
    /// Takes the next bytes of the stream, and hands over every line that they complete. A line that is too long
    /// is handed over once, as an error. Blank lines are skipped.
    pub fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(Result<&[u8], ProgressError>)) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            let (end, rest) = (&bytes[..at], &bytes[at + 1..]);
            bytes = rest;
            match self.partial.is_empty() && end.len() <= LINE_BYTES_MAX {
                // A line within one read is not copied.
                true if !self.too_long => hand_over(end, &mut line),
                _ => {
                    self.extend(end, &mut line);
                    hand_over(&self.partial, &mut line);
                }
            }
            self.partial.clear();
            self.too_long = false;
        }
        self.extend(bytes, &mut line);
    }

    /// Hands over the last line of a stream that ended without a newline.
    pub fn finish(&mut self, mut line: impl FnMut(Result<&[u8], ProgressError>)) {
        hand_over(&self.partial, &mut line);
        *self = Self::default();
    }

    fn extend(&mut self, bytes: &[u8], line: &mut impl FnMut(Result<&[u8], ProgressError>)) {
        if self.too_long {
            return;
        }
        if self.partial.len() + bytes.len() > LINE_BYTES_MAX {
            (self.too_long, self.partial) = (true, Vec::new());
            line(Err(ProgressError::TooLong { bytes_max: LINE_BYTES_MAX }));
            return;
        }
        self.partial.extend_from_slice(bytes);
    }
}

fn hand_over(whole: &[u8], line: &mut impl FnMut(Result<&[u8], ProgressError>)) {
    if !whole.trim_ascii().is_empty() {
        line(Ok(whole));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Result<Vec<u8>, ProgressError>> {
        let (mut lines, mut found) = (ProgressLines::default(), Vec::new());
        for piece in pieces {
            lines.push(piece, |line| found.push(line.map(<[u8]>::to_vec)));
            assert!(lines.partial.capacity() <= 2 * LINE_BYTES_MAX, "memory is bounded");
        }
        lines.finish(|line| found.push(line.map(<[u8]>::to_vec)));
        found
    }

    #[test]
    fn lines_are_whole_wherever_the_stream_is_split() {
        let stream = b"one\n\n two\nthree";
        for at in 0..stream.len() {
            let (first, second) = stream.split_at(at);
            let found: Vec<_> = lines(&[first, second]).into_iter().map(Result::unwrap).collect();
            assert_eq!(found, [&b"one"[..], b" two", b"three"], "split at {at}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_one_error_and_the_next_line_is_read() {
        let too_long = Err(ProgressError::TooLong { bytes_max: LINE_BYTES_MAX });
        let long = vec![b'x'; 10 << 20];
        let mut pieces: Vec<&[u8]> = long.chunks(5_000).collect();
        pieces.push(b"x\nnext\n");
        assert_eq!(lines(&pieces), [too_long.clone(), Ok(b"next".to_vec())]);
        let whole = [long.as_slice(), b"\nnext\n"].concat();
        assert_eq!(lines(&[&whole]), [too_long, Ok(b"next".to_vec())]);
        let exact = vec![b'y'; LINE_BYTES_MAX];
        assert_eq!(lines(&[&exact, b"\n"]), [Ok(exact.clone())]);
    }
}
