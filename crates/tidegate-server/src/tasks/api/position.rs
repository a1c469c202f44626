use std::fmt;
use std::str::FromStr;
use tidegate::task::{OutputChunk, OutputStream};

/// Position of a watcher in a task's output: the `id` of an event. A watcher that reconnects with the last one
/// gets the output after it, and nothing twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Number of the attempt.
    pub attempt: u32,
    /// Bytes of its standard output that were seen.
    pub stdout: u64,
    /// Bytes of its standard error that were seen.
    pub stderr: u64,
}

// === impl Position ===

impl Position {
    /// The part of an attempt's whole output after this position. A position of an older attempt is ignored.
    pub fn rest_of(self, attempt: u32, chunks: Vec<OutputChunk>) -> Vec<OutputChunk> {
        let mut seen = if attempt == self.attempt { self } else { Self::default() };
        let unseen = |mut chunk: OutputChunk| {
            let skip = seen.of(chunk.stream);
            let mut cut = usize::try_from(*skip).unwrap_or(usize::MAX).min(chunk.text.len());
            *skip -= cut as u64;
            // A position inside of a character is a client's error; the character is repeated whole.
            while !chunk.text.is_char_boundary(cut) {
                cut -= 1;
            }
            chunk.text.drain(..cut);
            (!chunk.text.is_empty()).then_some(chunk)
        };
        chunks.into_iter().filter_map(unseen).collect()
    }

    /// Advances past a chunk.
    pub fn add(&mut self, chunk: &OutputChunk) {
        let seen = self.of(chunk.stream);
        *seen = seen.saturating_add(chunk.text.len() as u64);
    }

    fn of(&mut self, stream: OutputStream) -> &mut u64 {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.attempt, self.stdout, self.stderr)
    }
}

impl FromStr for Position {
    /// Not a position; the watcher starts from the beginning.
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('.');
        let (attempt, stdout, stderr) = (parts.next(), parts.next(), parts.next());
        let number = |part: Option<&str>| part.and_then(|part| part.parse().ok()).ok_or(());
        let attempt = attempt.and_then(|part| part.parse().ok()).ok_or(())?;
        match parts.next() {
            None => Ok(Self { attempt, stdout: number(stdout)?, stderr: number(stderr)? }),
            Some(_) => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(text: &str) -> OutputChunk {
        OutputChunk { stream: OutputStream::Stdout, text: text.to_owned() }
    }

    fn err(text: &str) -> OutputChunk {
        OutputChunk { stream: OutputStream::Stderr, text: text.to_owned() }
    }

    #[test]
    fn a_position_is_parsed_from_its_text() {
        let position = Position { attempt: 3, stdout: 17, stderr: 0 };
        assert_eq!(position.to_string().parse(), Ok(position));
        for bad in ["", "1", "1.2", "1.2.3.4", "a.b.c", "-1.0.0", "1..2"] {
            assert_eq!(bad.parse::<Position>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn seen_output_is_left_out_wherever_the_chunks_begin() {
        let all = || vec![out("héllo "), err("oh"), out("world"), err("!")];
        let text = |chunks: &[OutputChunk], stream| {
            let of = chunks.iter().filter(|chunk| chunk.stream == stream);
            of.map(|chunk| chunk.text.as_str()).collect::<String>()
        };
        let position = Position { attempt: 2, stdout: 9, stderr: 2 };
        let rest = position.rest_of(2, all());
        assert_eq!(text(&rest, OutputStream::Stdout), "rld");
        assert_eq!(text(&rest, OutputStream::Stderr), "!");
        assert_eq!(position.rest_of(3, all()), all(), "a new attempt starts again");
        let beyond = Position { attempt: 2, stdout: u64::MAX, stderr: 99 };
        assert!(beyond.rest_of(2, all()).is_empty());
        let inside = Position { attempt: 2, stdout: 2, stderr: 3 };
        assert_eq!(text(&inside.rest_of(2, all()), OutputStream::Stdout), "éllo world");
    }
}
