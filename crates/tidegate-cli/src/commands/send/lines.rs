use bytes::Bytes;
use std::fmt;
use tidegate::line_protocol::{LineConfig, LineCutter, LineError, LineParser};
use tidegate::usage::{Names, UsageRecord};

/// Invalid lines that are shown; further ones are only counted.
pub const SHOWN_MAX: usize = 10;

/// Line-protocol parser that tracks line numbers.
pub struct LineReader {
    cutter: LineCutter,
    parser: LineParser,
    names: Names,
    /// Time of lines without a timestamp.
    now_ns: i64,
    /// Lines so far.
    lines: u64,
    /// Invalid lines among them.
    wrong: u64,
}

/// Parsed piece of the input.
#[derive(Debug, Default)]
pub struct Parsed {
    pub records: Vec<UsageRecord>,
    /// Size of the piece.
    pub bytes: u64,
    pub lines: u64,
    pub lines_wrong: u64,
    /// Invalid lines that are to be shown.
    pub wrong: Vec<WrongLine>,
    /// Records before the first invalid line.
    pub records_before_wrong: Option<usize>,
}

/// A line that is not line protocol.
#[derive(Debug)]
pub struct WrongLine {
    pub number: u64,
    pub error: LineError,
}

// === impl LineReader ===

impl LineReader {
    pub fn new(config: LineConfig, now_ns: i64) -> Self {
        Self {
            cutter: LineCutter::new(LineCutter::LINE_BYTES_MAX),
            parser: LineParser::new(config),
            names: Names::default(),
            now_ns,
            lines: 0,
            wrong: 0,
        }
    }

    /// Parses the lines that end in this chunk.
    pub fn read(&mut self, chunk: Bytes) -> Parsed {
        let mut parsed = Parsed { bytes: chunk.len() as u64, ..Parsed::default() };
        self.cutter.push(chunk);
        loop {
            match self.cutter.next() {
                Ok(Some(block)) => self.parse(&block, &mut parsed),
                Ok(None) => return parsed,
                Err(error) => {
                    parsed.lines += 1;
                    self.lines += 1;
                    self.found_wrong(self.lines, error, &mut parsed);
                }
            }
        }
    }

    /// Parses the last line, if it has no newline.
    pub fn finish(&mut self) -> Parsed {
        let mut parsed = Parsed::default();
        if let Some(last) = self.cutter.finish() {
            self.parse(&last, &mut parsed);
        }
        parsed
    }

    fn parse(&mut self, block: &[u8], parsed: &mut Parsed) {
        let before = parsed.records.len();
        let (names, records) = (&mut self.names, &mut parsed.records);
        let outcome = self.parser.parse_block(block, self.now_ns, names, records, &mut |_| {});
        if outcome.lines_failed > 0 {
            // Rare: parse line by line to find the invalid ones.
            parsed.records.truncate(before);
            self.parse_by_line(block, parsed);
        }
        self.lines += outcome.lines as u64;
        parsed.lines += outcome.lines as u64;
    }

    fn parse_by_line(&mut self, block: &[u8], parsed: &mut Parsed) {
        let lines = block.split_inclusive(|byte| *byte == b'\n');
        for (number, line) in (self.lines + 1..).zip(lines) {
            let (names, records) = (&mut self.names, &mut parsed.records);
            if let Err(error) = self.parser.parse_line(line, self.now_ns, names, records) {
                self.found_wrong(number, error, parsed);
            }
        }
    }

    fn found_wrong(&mut self, number: u64, error: LineError, parsed: &mut Parsed) {
        self.wrong += 1;
        parsed.lines_wrong += 1;
        parsed.records_before_wrong.get_or_insert(parsed.records.len());
        if self.wrong <= SHOWN_MAX as u64 {
            parsed.wrong.push(WrongLine { number, error });
        }
    }
}

// === impl WrongLine ===

impl fmt::Display for WrongLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, {}", self.number, self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a,tenant=x value=1 1\n# a comment\nwrong\n\na,tenant=x value=2 2\nb x\n\
                        a,tenant=x value=3 3";

    /// Reads the text in pieces of this size.
    fn read(text: &str, piece: usize) -> (Vec<i64>, Vec<u64>, u64) {
        let mut reader = LineReader::new(LineConfig::default(), 0);
        let pieces = text.as_bytes().chunks(piece).map(|piece| piece.to_vec().into());
        let mut parsed: Vec<_> = pieces.map(|piece| reader.read(piece)).collect();
        parsed.push(reader.finish());
        let times = parsed.iter().flat_map(|parsed| &parsed.records);
        let wrong = parsed.iter().flat_map(|parsed| &parsed.wrong);
        (
            times.map(|record| record.time_ns).collect(),
            wrong.map(|wrong| wrong.number).collect(),
            parsed.iter().map(|parsed| parsed.lines).sum(),
        )
    }

    #[test]
    fn lines_have_their_numbers_wherever_the_text_is_cut() {
        for piece in 1..TEXT.len() {
            assert_eq!(read(TEXT, piece), (vec![1, 2, 3], vec![3, 6], 7), "{piece}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_has_a_number_too() {
        let long = "x".repeat(LineCutter::LINE_BYTES_MAX + 1);
        let text = format!("a value=1 1\n{long}\nwrong\na value=2 2\n");
        for piece in [1_000, 100_000] {
            assert_eq!(read(&text, piece), (vec![1, 2], vec![2, 3], 4), "{piece}");
        }
    }

    #[test]
    fn only_the_first_wrong_lines_are_shown() {
        let (_, wrong, lines) = read(&"wrong\n".repeat(50), 7);
        assert_eq!((wrong, lines), ((1..=10).collect(), 50));
    }
}
