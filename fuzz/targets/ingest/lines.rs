use bytes::Bytes;
use tidegate::line_protocol::{
    LineConfig, LineCutter, LineFault, LineParser, Precision, write_line,
};
use tidegate::usage::{Names, UsageRecord};

/// Short, so that short inputs reach it.
const LINE_BYTES_MAX: usize = 400;
const NOW_NS: i64 = 1_700_000_000_000_000_000;

/// The lines of a stream, and the number of those that were too long.
#[derive(Debug, Default, PartialEq, Eq)]
struct Cut {
    lines: Vec<Vec<u8>>,
    too_long: usize,
}

/// Cuts a stream into lines at any piece size alike, parses each line, and writes and parses its records again.
pub fn run(input: &[u8]) -> bool {
    let cut = expected(input);
    for piece_bytes in [1, 2 + input.len() % 61, input.len().max(1)] {
        assert_eq!(cut_in_pieces(input, piece_bytes), cut, "in pieces of {piece_bytes} bytes");
    }
    let mut parser = LineParser::new(LineConfig::default());
    let mut seconds =
        LineParser::new(LineConfig { precision: Precision::S, ..LineConfig::default() });
    let (mut names, mut accepted) = (Names::with_capacity(8), false);
    for line in &cut.lines {
        let mut records = Vec::new();
        match parser.parse_line(line, NOW_NS, &mut names, &mut records) {
            Ok(outcome) => assert_eq!(outcome.records, records.len()),
            Err(error) => {
                assert!(records.is_empty(), "a line counts as a whole or not at all");
                assert!((1..=line.len() + 1).contains(&error.column), "{error}");
                assert!(error.excerpt.chars().count() <= 82 && is_one_line(&error.to_string()));
            }
        }
        records.iter().for_each(|record| check(record, &mut parser, &mut names));
        accepted |= !records.is_empty();
        // Times in another unit change nothing but the time, and may be out of range.
        let mut in_seconds = Vec::new();
        if seconds.parse_line(line, NOW_NS, &mut names, &mut in_seconds).is_ok() {
            let timeless = |record: &UsageRecord| UsageRecord { time_ns: 0, ..record.clone() };
            assert!(in_seconds.iter().map(timeless).eq(records.iter().map(timeless)));
        }
    }
    accepted
}

/// A record is within the bounds that stores rely on, and is the same after it was written as a line.
fn check(record: &UsageRecord, parser: &mut LineParser, names: &mut Names) {
    let UsageRecord { tenant, meter, labels, .. } = record;
    assert!((1..=128).contains(&tenant.len()) && (1..=128).contains(&meter.len()), "{record:?}");
    assert!(labels.len() <= 1024);
    assert!([tenant, meter, labels].iter().all(|text| is_one_line(text)), "{record:?}");
    let mut line = String::new();
    // Some names can be read and not written, such as those that end with a backslash.
    if write_line(record, &mut line).is_ok() {
        let mut read = Vec::new();
        let outcome = parser.parse_line(line.as_bytes(), 0, names, &mut read);
        assert!(outcome.is_ok(), "{line:?}: {outcome:?}");
        assert_eq!(read, std::slice::from_ref(record), "{line:?}");
    }
}

fn is_one_line(text: &str) -> bool {
    !text.bytes().any(|byte| byte.is_ascii_control())
}

fn cut_in_pieces(input: &[u8], piece_bytes: usize) -> Cut {
    let (mut cutter, mut cut) = (LineCutter::new(LINE_BYTES_MAX), Cut::default());
    for piece in input.chunks(piece_bytes) {
        cutter.push(Bytes::copy_from_slice(piece));
        loop {
            match cutter.next() {
                Ok(Some(block)) => cut.lines.extend(lines_of(&block)),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(error.fault, LineFault::LineTooLong);
                    cut.too_long += 1;
                }
            }
        }
        assert!(cutter.held_bytes() <= LINE_BYTES_MAX + 1, "{}", cutter.held_bytes());
    }
    cut.lines.extend(cutter.finish().map(|last| last.to_vec()));
    cut
}

/// The same by a plain split.
fn expected(input: &[u8]) -> Cut {
    let is_short =
        |line: &Vec<u8>| line.strip_suffix(b"\n").unwrap_or(line).len() <= LINE_BYTES_MAX;
    let (lines, too_long): (Vec<_>, Vec<_>) = lines_of(input).partition(is_short);
    Cut { lines, too_long: too_long.len() }
}

fn lines_of(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec)
}
