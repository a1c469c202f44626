//! An ingest server in a few lines: it remembers what it was sent, each batch once.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tidegate::frame::{
    Ack, Batch, FrameKind, FrameLimits, Hello, Reassembler, Reject, RejectReason, Welcome,
};
use tidegate::sequence::{Seen, SeqWindow};
use tidegate::signal::BackpressureSignal;
use tidegate::usage::Names;

#[derive(Clone)]
pub struct Server {
    pub address: SocketAddr,
    inside: Arc<Mutex<Inside>>,
    /// How long each batch takes.
    delay: Duration,
    /// The tenant whose batches are refused.
    refused: Option<&'static str>,
}

#[derive(Default)]
struct Inside {
    windows: BTreeMap<String, SeqWindow>,
    times: Vec<i64>,
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(Duration::ZERO, None)
    }

    pub fn start_with(delay: Duration, refused: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { address, inside: Arc::default(), delay, refused };
        let accepting = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let server = accepting.clone();
                // A client that was killed ends its connection anyhow.
                thread::spawn(move || server.serve(stream.unwrap()));
            }
        });
        server
    }

    /// The times of all records that are stored, in order.
    pub fn times(&self) -> Vec<i64> {
        let mut times = self.inside.lock().unwrap().times.clone();
        times.sort_unstable();
        times
    }

    pub fn senders(&self) -> Vec<String> {
        self.inside.lock().unwrap().windows.keys().cloned().collect()
    }

    fn serve(&self, mut stream: TcpStream) {
        let limits = FrameLimits::default();
        let (mut frames, mut names) = (Reassembler::new(limits), Names::default());
        let (mut sender, mut buffer) = (String::new(), [0; 4096]);
        while let Ok(read @ 1..) = stream.read(&mut buffer) {
            frames.push(Bytes::copy_from_slice(&buffer[..read]));
            while let Some(frame) = frames.next().unwrap() {
                let answer = match frame.kind {
                    FrameKind::Hello => {
                        sender = Hello::decode(&frame).unwrap().sender.to_string();
                        self.welcome(&sender)
                    }
                    _ => {
                        let batch = Batch::decode(&frame, &limits, &mut names).unwrap();
                        self.store(&sender, &batch)
                    }
                };
                if stream.write_all(&answer).is_err() {
                    return;
                }
            }
        }
    }

    fn welcome(&self, sender: &str) -> Bytes {
        let seen = self.inside.lock().unwrap().windows.get(sender).cloned().unwrap_or_default();
        Welcome {
            version: 1,
            limits: FrameLimits::default(),
            batches_in_flight_max: 64,
            settled_low: seen.low(),
            seen: Some(seen),
            signal: BackpressureSignal::CLEAR,
        }
        .encode()
    }

    fn store(&self, sender: &str, batch: &Batch) -> Bytes {
        thread::sleep(self.delay);
        let signal = BackpressureSignal::CLEAR;
        if batch.records.iter().any(|record| Some(&*record.tenant) == self.refused) {
            let (reason, message) = (RejectReason::Malformed, "not from them".to_owned());
            return Reject { seq: batch.seq, reason, retry_after_ms: None, signal, message }
                .encode();
        }
        let mut inside = self.inside.lock().unwrap();
        let window = inside.windows.entry(sender.to_owned()).or_default();
        window.settle(batch.settled);
        match window.see(batch.seq) {
            Seen::New => inside.times.extend(batch.records.iter().map(|record| record.time_ns)),
            Seen::Before => {}
            Seen::TooFar => panic!("batch {} is too far ahead", batch.seq),
        }
        Ack { seqs: [batch.seq].into_iter().collect(), signal }.encode()
    }
}
