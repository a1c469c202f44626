//! What a record costs on the wire: as a frame and as a line, beside a parse of the same records as JSON.
//!
//! `cargo bench -p tidegate --bench wire`
//!
//! Every round measures every case, in a new order; a ratio is taken within a round, so that a busy or a slow
//! machine disturbs both of its sides. Exit code 1 if a case needs more than its share of what JSON needs.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;
use tidegate::MessageClass;
use tidegate::frame::{Batch, BatchBuilder, FrameLimits, Reassembler};
use tidegate::line_protocol::{LineConfig, LineCutter, LineParser, write_line};
use tidegate::usage::{Names, UsageRecord};

/// Odd, so that the median is one that was measured.
const ROUNDS: usize = 101;
/// A millisecond a case: long beside the clock, and short enough to be left alone now and then.
const RECORDS: usize = 5_000;
/// What one read of a socket brings.
const READ_BYTES: usize = 16 << 10;
const TENANTS: usize = 200;
const METERS: usize = 12;
const MODELS: usize = 5;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    /// The frames' bytes, copied once. The floor.
    Copy,
    /// The same records from one JSON object a line, with numbers as text because floats would change them.
    Json,
    /// Records into frames.
    FrameEncode,
    /// Reads of 16 KiB into records.
    FrameDecode,
    /// Records into lines.
    LineWrite,
    /// Reads of 16 KiB into records.
    LineParse,
}

#[derive(Serialize, Deserialize)]
struct JsonRecord<'a> {
    tenant: &'a str,
    meter: &'a str,
    quantity: &'a str,
    time_ns: i64,
    labels: &'a str,
}

struct Subjects {
    records: Vec<UsageRecord>,
    json: String,
    frames: Bytes,
    lines: Bytes,
    names: Names,
    parser: LineParser,
    builder: BatchBuilder,
    target: Vec<u8>,
}

fn main() -> ExitCode {
    let mut subjects = Subjects::new();
    let rounds: Vec<_> = (0..ROUNDS).map(|round| subjects.round(round)).collect();
    let mut all_hold = true;
    println!(
        "{:<12} {:>10} {:>8} {:>12} {:>9} {:>9} {:>9}",
        format!("{ROUNDS} rounds"),
        "ns/record",
        "least",
        "bytes/record",
        "/ copy",
        "/ json",
        "at most"
    );
    for case in Case::ALL {
        let to =
            |other: Case| median(&rounds, |round| round[case as usize] / round[other as usize]);
        let (ns, to_json) = (median(&rounds, |round| round[case as usize]), to(Case::Json));
        // What it costs when nothing else runs for a moment.
        let least = rounds.iter().map(|round| round[case as usize]).fold(f64::MAX, f64::min);
        let holds = to_json <= case.share_of_json_max();
        all_hold &= holds;
        println!(
            "{:<12} {ns:>10.1} {least:>8.1} {:>12.1} {:>9.1} {to_json:>9.2} {:>9.2}{}",
            format!("{case:?}"),
            subjects.bytes(case) as f64 / RECORDS as f64,
            to(Case::Copy),
            case.share_of_json_max(),
            if holds { "" } else { "  MISSED" },
        );
    }
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn median(rounds: &[[f64; 6]], of: impl Fn(&[f64; 6]) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

// === impl Case ===

impl Case {
    const ALL: [Self; 6] = [
        Self::Copy,
        Self::Json,
        Self::FrameEncode,
        Self::FrameDecode,
        Self::LineWrite,
        Self::LineParse,
    ];

    /// A frame is to be worth its trouble. A line may cost half as much again as JSON: its names are not in
    /// quotes, so that no byte can be skipped. Writing lines is for tests and generators only: nothing is asked
    /// of it.
    fn share_of_json_max(self) -> f64 {
        match self {
            Self::LineWrite => f64::INFINITY,
            Self::Copy | Self::Json => 1.0,
            Self::LineParse => 1.5,
            Self::FrameEncode | Self::FrameDecode => 0.5,
        }
    }
}

// === impl Subjects ===

impl Subjects {
    fn new() -> Self {
        let mut names = Names::default();
        let records: Vec<_> = (0..RECORDS).map(|number| record(number, &mut names)).collect();
        let mut subjects = Self {
            json: records.iter().map(json).collect::<Vec<_>>().join("\n"),
            lines: lines(&records).into(),
            frames: Bytes::new(),
            records,
            names,
            parser: LineParser::new(LineConfig::default()),
            builder: BatchBuilder::new(FrameLimits::default()),
            target: Vec::new(),
        };
        let mut frames = Vec::new();
        subjects.encode(|frame| frames.extend_from_slice(&frame));
        subjects.frames = frames.into();
        subjects
    }

    fn bytes(&self, case: Case) -> usize {
        match case {
            Case::Json => self.json.len(),
            Case::Copy | Case::FrameEncode | Case::FrameDecode => self.frames.len(),
            Case::LineWrite | Case::LineParse => self.lines.len(),
        }
    }

    fn round(&mut self, round: usize) -> [f64; 6] {
        let mut ns = [0.0; 6];
        for place in 0..Case::ALL.len() {
            let case = Case::ALL[(place + round) % Case::ALL.len()];
            let start = Instant::now();
            let done = self.run(case);
            ns[case as usize] = start.elapsed().as_nanos() as f64 / RECORDS as f64;
            assert_eq!(done, RECORDS, "{case:?}");
        }
        ns
    }

    fn run(&mut self, case: Case) -> usize {
        match case {
            Case::Copy => {
                self.target.clear();
                self.target.extend_from_slice(black_box(&self.frames));
                black_box(&self.target);
                RECORDS
            }
            Case::Json => self.parse_json(),
            Case::FrameEncode => self.encode(|frame| drop(black_box(frame))),
            Case::FrameDecode => self.decode(),
            Case::LineWrite => {
                black_box(lines(&self.records));
                RECORDS
            }
            Case::LineParse => self.parse(),
        }
    }

    fn parse_json(&mut self) -> usize {
        let mut records = Vec::new();
        for line in self.json.lines() {
            let json: JsonRecord<'_> = serde_json::from_str(line).expect("JSON");
            records.push(UsageRecord {
                tenant: self.names.get(json.tenant),
                meter: self.names.get(json.meter),
                quantity: json.quantity.parse().expect("a number"),
                time_ns: json.time_ns,
                labels: self.names.get(json.labels),
            });
        }
        black_box(records).len()
    }

    fn encode(&mut self, mut take: impl FnMut(Bytes)) -> usize {
        let mut seq = 0;
        for record in &self.records {
            if self.builder.push(record).is_err() {
                seq += 1;
                take(self.builder.finish(seq, seq - 1, MessageClass::Data));
                self.builder.push(record).expect("it is empty");
            }
        }
        take(self.builder.finish(seq + 1, seq, MessageClass::Data));
        self.records.len()
    }

    fn decode(&mut self) -> usize {
        let limits = FrameLimits::default();
        let (mut reassembler, mut count) = (Reassembler::new(limits), 0);
        for chunk in chunks(&self.frames) {
            reassembler.push(chunk);
            while let Some(frame) = reassembler.next().expect("frames") {
                let batch = Batch::decode(&frame, &limits, &mut self.names).expect("a batch");
                count += black_box(batch).records.len();
            }
        }
        count
    }

    fn parse(&mut self) -> usize {
        let (mut cutter, mut count) = (LineCutter::new(LineCutter::LINE_BYTES_MAX), 0);
        for chunk in chunks(&self.lines) {
            cutter.push(chunk);
            while let Some(block) = cutter.next().expect("lines") {
                let mut records = Vec::new();
                let wrong = &mut |error| panic!("{error}");
                self.parser.parse_block(&block, 0, &mut self.names, &mut records, wrong);
                count += black_box(records).len();
            }
        }
        count
    }
}

fn record(number: usize, names: &mut Names) -> UsageRecord {
    let labels = format!("model=m{},region=eu-west-1", number * 31 % MODELS);
    UsageRecord {
        tenant: names.get(&format!("tenant-{:03}", number * 7 % TENANTS)),
        meter: names.get(&format!("tokens.output.{}", number % METERS)),
        // Half of them whole, half with a fraction.
        quantity: rust_decimal::Decimal::new(
            (number * 7919 % 100_000) as i64,
            number as u32 % 2 * 3,
        ),
        time_ns: 1_700_000_000_000_000_000 + number as i64 * 1_003,
        labels: names.get(&labels),
    }
}

fn json(record: &UsageRecord) -> String {
    let quantity = record.quantity.to_string();
    let json = JsonRecord {
        tenant: &record.tenant,
        meter: &record.meter,
        quantity: &quantity,
        time_ns: record.time_ns,
        labels: &record.labels,
    };
    serde_json::to_string(&json).expect("plain data")
}

fn lines(records: &[UsageRecord]) -> String {
    let mut out = String::new();
    for record in records {
        write_line(record, &mut out).expect("a line can say it");
    }
    out
}

fn chunks(bytes: &Bytes) -> impl Iterator<Item = Bytes> {
    let cut = |start| bytes.slice(start..bytes.len().min(start + READ_BYTES));
    (0..bytes.len()).step_by(READ_BYTES).map(cut)
}
