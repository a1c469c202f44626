//! What a record costs whoever sends it: taken, encoded, sent over TCP on loopback and acknowledged.
//!
//! `cargo bench -p tidegate --bench client`
//!
//! The server acknowledges batches without a look at their records, on a thread of its own. What is asked for is
//! less than 2 µs of the sender's processor time a record. Exit code 1 if that is missed.

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidegate::client::{ClientConfig, IngestClient};
use tidegate::frame::{Ack, BatchBuilder, FrameKind, FrameLimits, Reassembler, Welcome};
use tidegate::signal::BackpressureSignal;
use tidegate::usage::UsageRecord;
use tokio::runtime::{Builder, Runtime};

/// Odd, so that the median is one that was measured.
const ROUNDS: usize = 11;
const RECORDS: usize = 200_000;
const NS_MAX: f64 = 2_000.0;

fn main() -> ExitCode {
    let records = records();
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let address = serve();
    let encode = median(|| encode(&records));
    let one = median(|| through(&runtime, &address, &records, 1));
    let many = median(|| through(&runtime, &address, &records, 1_000));
    println!("encode alone                {encode:>7.0} ns a record");
    println!("send, one at a time         {one:>7.0} ns a record, {:>9.0} a second", 1e9 / one);
    println!("send_batch of 1,000         {many:>7.0} ns a record, {:>9.0} a second", 1e9 / many);
    match one < NS_MAX && many < NS_MAX {
        true => ExitCode::SUCCESS,
        false => {
            eprintln!("more than {NS_MAX} ns a record");
            ExitCode::FAILURE
        }
    }
}

/// As of a small fleet: 50 tenants, 8 meters, labels on every other record.
fn records() -> Vec<UsageRecord> {
    let record = |n: usize| UsageRecord {
        tenant: format!("tenant-{:04}", n % 50).into(),
        meter: format!("tokens.kind-{}", n % 8).into(),
        quantity: rust_decimal::Decimal::new(n as i64 % 100_000, 2),
        time_ns: 1_700_000_000_000_000_000 + n as i64 * 1_000,
        labels: if n.is_multiple_of(2) { "".into() } else { format!("model=m{}", n % 4).into() },
    };
    (0..RECORDS).map(record).collect()
}

fn median(measure: impl Fn() -> Duration) -> f64 {
    let mut rounds: Vec<_> = (0..ROUNDS).map(|_| measure()).collect();
    rounds.sort();
    rounds[ROUNDS / 2].as_nanos() as f64 / RECORDS as f64
}

fn encode(records: &[UsageRecord]) -> Duration {
    let mut builder = BatchBuilder::new(FrameLimits::default());
    let began = Instant::now();
    for (seq, batch) in (1..).zip(records.chunks(1_000)) {
        for record in batch {
            builder.push(record).expect("there is room");
        }
        black_box(builder.finish(seq, 0, tidegate::MessageClass::Data));
    }
    began.elapsed()
}

/// All of it, until the last is acknowledged. The server's thread counts as well where there is one core.
fn through(runtime: &Runtime, address: &str, records: &[UsageRecord], chunk: usize) -> Duration {
    runtime.block_on(async {
        let config = ClientConfig::new("bench".parse().expect("a name"));
        let (client, _rejections) = IngestClient::connect(address, config).expect("a client");
        client.reached().await.expect("a server");
        let began = Instant::now();
        for chunk in records.chunks(chunk) {
            client.send_batch(chunk).await.expect("it is taken");
        }
        client.flush().await.expect("it is acknowledged");
        began.elapsed()
    })
}

fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            let (limits, signal) = (FrameLimits::default(), BackpressureSignal::CLEAR);
            let mut frames = Reassembler::new(limits);
            let mut buffer = vec![0; 256 * 1024];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                frames.push(buffer[..read].to_vec().into());
                let (mut seqs, mut answer) = (Vec::new(), Vec::new());
                while let Ok(Some(frame)) = frames.next() {
                    match frame.kind {
                        FrameKind::Hello => Welcome {
                            version: 1,
                            limits,
                            batches_in_flight_max: 64,
                            settled_low: 0,
                            seen: None,
                            signal,
                        }
                        .encode_into(&mut answer),
                        _ => seqs.extend(frame.peek_seq()),
                    }
                }
                Ack::encode_all(&mut seqs, signal, &mut answer);
                if stream.write_all(&answer).is_err() {
                    break;
                }
            }
        }
    });
    address
}
