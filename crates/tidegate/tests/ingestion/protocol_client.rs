//! The client in `docs/protocol.md`, written from that page in another language, against this program's decoder.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use bytes::Bytes;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tidegate::frame::{
    Ack, Batch, FrameKind, FrameLimits, Hello, RawFrame, Reassembler, Reject, RejectReason, Welcome,
};
use tidegate::signal::{BackpressureLevel, BackpressureSignal};
use tidegate::usage::{Names, UsageRecord};

const DOCUMENT: &str = include_str!("../../../../docs/protocol.md");

const SIGNAL: BackpressureSignal = BackpressureSignal {
    level: BackpressureLevel::Throttle,
    delay_ms: 1,
    batch_only: false,
    drop_non_critical: false,
    ttl_ms: 1_000,
};

/// A receiver that answers one connection.
struct Receiver {
    connection: TcpStream,
    reassembler: Reassembler,
    limits: FrameLimits,
}

// === impl Receiver ===

impl Receiver {
    fn accept(listener: &TcpListener) -> Self {
        let (connection, _) = listener.accept().unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let limits = FrameLimits { batch_records_max: 40, ..FrameLimits::default() };
        Self { connection, reassembler: Reassembler::new(limits), limits }
    }

    fn frame(&mut self) -> Option<RawFrame> {
        loop {
            if let Some(frame) = self.reassembler.next().unwrap() {
                return Some(frame);
            }
            let mut read = [0; 512];
            let count = self.connection.read(&mut read).unwrap();
            if count == 0 {
                return None;
            }
            self.reassembler.push(Bytes::copy_from_slice(&read[..count]));
        }
    }

    fn send(&mut self, frame: &Bytes) {
        self.connection.write_all(frame).unwrap();
    }

    fn welcome(&mut self) -> Hello {
        let hello = Hello::decode(&self.frame().expect("a hello")).unwrap();
        let welcome = Welcome {
            version: 1,
            limits: self.limits,
            batches_in_flight_max: 1,
            settled_low: 0,
            seen: Some(Default::default()),
            signal: SIGNAL,
        };
        self.send(&welcome.encode());
        hello
    }

    fn batch(&mut self) -> Option<Batch> {
        let frame = self.frame()?;
        assert_eq!(frame.kind, FrameKind::Batch);
        Some(Batch::decode(&frame, &self.limits, &mut Names::default()).unwrap())
    }

    fn reject(&mut self, seq: u64, reason: RejectReason, retry_after_ms: Option<u32>) {
        let message = "not now".to_owned();
        self.send(&Reject { seq, reason, retry_after_ms, signal: SIGNAL, message }.encode());
    }

    fn ack(&mut self, seq: u64) {
        self.send(&Ack { seqs: [seq].into_iter().collect(), signal: SIGNAL }.encode());
    }
}

fn start_client(listener: &TcpListener, input: &str) -> Child {
    let script = DOCUMENT.split_once("```python\n").expect("a client").1;
    let script = script.split_once("```").expect("its end").0;
    let mut client = Command::new("python3")
        .args(["-c", script, "127.0.0.1"])
        .args([listener.local_addr().unwrap().port().to_string(), "meter-reader".to_owned()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 is installed");
    client.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    client
}

fn said(client: Child) -> (bool, String) {
    let Output { status, stdout, stderr } = client.wait_with_output().unwrap();
    (status.success(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

#[test]
fn the_client_of_the_document_sends_until_all_is_durable() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let quantity = |number: i64| format!("{}.{:02}", number - 3, number % 100);
    let line =
        |number: i64| format!("tenant-{} tokens {} {number}\n", number % 3, quantity(number));
    let client = start_client(&listener, &(0..100).map(line).collect::<String>());

    let mut receiver = Receiver::accept(&listener);
    let hello = receiver.welcome();
    assert!(hello.sender.as_str().starts_with("meter-reader/"), "{}", hello.sender);
    let (mut records, mut refused) = (Vec::<UsageRecord>::new(), None);
    while let Some(batch) = receiver.batch() {
        // Each is refused once, and comes again as it was.
        if refused.as_ref() == Some(&batch) {
            receiver.ack(batch.seq);
            records.extend(batch.records);
        } else {
            receiver.reject(batch.seq, RejectReason::Overloaded, Some(5));
            refused = Some(batch);
        }
    }
    assert_eq!(said(client), (true, "100 records are durable\n".to_owned()));
    assert_eq!(refused.map(|batch| (batch.seq, batch.settled)), Some((3, 2)));
    for (number, record) in (0_i64..).zip(&records) {
        assert_eq!(record.quantity.to_string(), quantity(number));
        let expected = (format!("tenant-{}", number % 3), number);
        assert_eq!((record.tenant.to_string(), record.time_ns), expected);
    }
    assert_eq!(records.len(), 100);
}

#[test]
fn the_client_of_the_document_gives_up_what_is_refused_for_good() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = start_client(&listener, "acme tokens 5 1\n");
    let mut receiver = Receiver::accept(&listener);
    receiver.welcome();
    let batch = receiver.batch().expect("a batch");
    receiver.reject(batch.seq, RejectReason::Malformed, None);
    assert!(receiver.batch().is_none(), "and ends");
    assert_eq!(said(client), (false, "batch 1: malformed: not now\n".to_owned()));
}
