//! `docs/protocol.md` is true: its bytes are read as it says and are what is written, and it names every reason.
//!
//! The bytes there were not made by this program, so this is also a check against somebody else's encoder.

use bytes::Bytes;
use tidegate_core::admission::MessageClass;
use tidegate_core::frame::{
    Ack, Batch, BatchBuilder, FrameError, FrameKind, FrameLimits, Hello, NameFault, RawFrame,
    Reassembler, RecordFault, Reject, RejectReason, Welcome,
};
use tidegate_core::line_protocol::{LineConfig, LineFault, LineParser};
use tidegate_core::signal::{BackpressureLevel, BackpressureSignal};
use tidegate_core::usage::{Names, UsageRecord};

const DOCUMENT: &str = include_str!("../../../../docs/protocol.md");

fn fenced<'d>(info: &str) -> &'d str {
    let start = DOCUMENT.split_once(&format!("```{info}\n")).unwrap_or_else(|| panic!("no {info}"));
    start.1.split_once("```").expect("an end").0
}

/// The bytes of an example, without its comments.
fn example(name: &str) -> Bytes {
    let lines = fenced(&format!("hex {name}")).lines();
    let code = lines.map(|line| line.split(';').next().unwrap_or_default());
    let bytes = code.flat_map(str::split_whitespace);
    bytes.map(|byte| u8::from_str_radix(byte, 16).expect("two digits")).collect()
}

fn raw(bytes: &Bytes) -> RawFrame {
    let mut reassembler = Reassembler::new(FrameLimits::default());
    reassembler.push(bytes.clone());
    let frame = reassembler.next().unwrap().expect("a whole frame");
    assert!(!reassembler.is_within_frame(), "and nothing else");
    frame
}

fn signal(level: BackpressureLevel, delay_ms: u32, hard: bool) -> BackpressureSignal {
    let (batch_only, drop_non_critical) = (hard, hard);
    BackpressureSignal { level, delay_ms, batch_only, drop_non_critical, ttl_ms: 5_000 }
}

#[test]
fn the_hellos_are_as_shown() {
    let (bytes, expected) =
        (example("hello"), Hello::new("worker-17".parse().unwrap(), "demo/1.0"));
    assert_eq!(Hello::decode(&raw(&bytes)), Ok(expected.clone()));
    assert_eq!(expected.encode(), bytes);

    let bytes = example("welcome");
    let expected = Welcome {
        version: 1,
        limits: FrameLimits::default(),
        batches_in_flight_max: 64,
        settled_low: 41,
        seen: None,
        signal: signal(BackpressureLevel::None, 0, false),
    };
    assert_eq!(Welcome::decode(&raw(&bytes)), Ok(expected.clone()));
    assert_eq!(expected.encode(), bytes);
}

#[test]
fn the_batch_is_as_shown() {
    let bytes = example("batch");
    let record = |meter: &str, quantity: &str, labels: &str| UsageRecord {
        tenant: "acme".into(),
        meter: meter.into(),
        quantity: quantity.parse().unwrap(),
        time_ns: 1_700_000_000_000_000_000,
        labels: labels.into(),
    };
    let records =
        [record("tokens.input", "1200", "model=small"), record("tokens.output", "12.5", "")];
    let frame = raw(&bytes);
    assert_eq!((frame.kind, frame.peek_seq()), (FrameKind::Batch, Some(43)));
    let batch = Batch::decode(&frame, &FrameLimits::default(), &mut Names::default()).unwrap();
    assert_eq!((batch.seq, batch.settled, batch.class), (43, 41, MessageClass::Data));
    assert_eq!(batch.records, records);

    // Its table is in another order than the builder's, so only what it means can be compared.
    let mut builder = BatchBuilder::new(FrameLimits::default());
    records.iter().for_each(|record| builder.push(record).unwrap());
    let ours = raw(&builder.finish(43, 41, MessageClass::Data));
    let ours = Batch::decode(&ours, &FrameLimits::default(), &mut Names::default());
    assert_eq!(ours, Ok(batch));
}

#[test]
fn the_answers_are_as_shown() {
    let bytes = example("ack");
    let expected = Ack {
        seqs: [42, 43, 45].into_iter().collect(),
        signal: signal(BackpressureLevel::Throttle, 50, false),
    };
    assert_eq!(Ack::decode(&raw(&bytes)), Ok(expected.clone()));
    assert_eq!(expected.encode(), bytes);

    let bytes = example("reject");
    let expected = Reject {
        seq: 44,
        reason: RejectReason::Overloaded,
        retry_after_ms: Some(250),
        signal: signal(BackpressureLevel::Reject, 500, true),
        message: "the store is behind".to_owned(),
    };
    assert_eq!(Reject::decode(&raw(&bytes)), Ok(expected.clone()));
    assert_eq!(expected.encode(), bytes);
}

#[test]
fn the_line_is_as_shown() {
    let line = DOCUMENT.lines().find(|line| line.starts_with("tokens,tenant=")).expect("a line");
    let (mut names, mut records) = (Names::default(), Vec::new());
    let mut parser = LineParser::new(LineConfig::default());
    parser.parse_line(line.as_bytes(), 0, &mut names, &mut records).unwrap();
    let meters: Vec<_> = records.iter().map(|record| &*record.meter).collect();
    assert_eq!(meters, ["tokens.input", "tokens.output"]);
    assert!(records.iter().all(|r| (&*r.tenant, &*r.labels) == ("acme", "model=small")));
}

#[test]
fn every_reason_has_its_row() {
    for reason in RejectReason::ALL {
        assert!(DOCUMENT.contains(&format!("\n| `{reason}` |")), "{reason}");
    }
    for fault in LineFault::ALL {
        assert!(DOCUMENT.contains(&format!("\n| `{}` |", fault.reason())), "{}", fault.reason());
    }
    for error in frame_errors() {
        let (reason, told) = (format!("`{}`", error.reason()), error.reject_reason());
        let connection = if error.breaks_framing() { "closed" } else { "stays open" };
        let row = format!("| `{told}` | {connection} |");
        let said = |line: &str| line.contains(&reason) && line.ends_with(&row);
        assert!(DOCUMENT.lines().any(said), "{reason} {row}");
    }
}

fn frame_errors() -> [FrameError; 15] {
    let (kind, class) = (FrameKind::Batch, MessageClass::Control);
    [
        FrameError::TooLong { length: 0, length_max: 0 },
        FrameError::TooShort { length: 0 },
        FrameError::UnknownVersion { given: 0 },
        FrameError::UnknownKind { given: 0 },
        FrameError::UnknownClass { given: 0 },
        FrameError::ClassTooHigh { kind, class, seq: None },
        FrameError::WrongKind { expected: kind, given: kind },
        FrameError::BadBody { at: 0, expected: "" },
        FrameError::TrailingBytes { bytes: 0 },
        FrameError::TooManyRecords { given: 0, max: 0 },
        FrameError::TooManyNames { given: 0, max: 0 },
        FrameError::BadName { index: 0, fault: NameFault::Empty },
        FrameError::BadRecord { index: 0, fault: RecordFault::Shape },
        FrameError::BadSeq { seq: 0, settled: 0 },
        FrameError::BadSender,
    ]
}
