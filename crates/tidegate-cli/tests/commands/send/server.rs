//! An ingest server in a few lines: it remembers what it was sent, each batch once.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use tidegate::frame::{
    Ack, Batch, FrameKind, FrameLimits, Hello, Reassembler, Reject, RejectReason, Welcome,
};
use tidegate::sequence::{SeqStatus, SeqWindow};
use tidegate::signal::BackpressureSignal;
use tidegate::usage::Names;

#[derive(Clone)]
pub struct Server {
    pub address: SocketAddr,
    inside: Arc<(Mutex<Inside>, Condvar)>,
    /// The tenant whose batches are refused.
    refused: Option<&'static str>,
}

#[derive(Default)]
struct Inside {
    windows: BTreeMap<String, SeqWindow>,
    times: Vec<i64>,
    batches: usize,
    /// Limit of stored records; further ones wait.
    batches_max: usize,
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(usize::MAX, None)
    }

    /// One that stores so many batches, and no more until it is let.
    pub fn start_with(batches_max: usize, refused: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inside = Mutex::new(Inside { batches_max, ..Inside::default() });
        let server = Self { address, inside: Arc::new((inside, Condvar::new())), refused };
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

    /// Stores so many in all from now on.
    pub fn let_store(&self, batches_max: usize) {
        self.inside().batches_max = batches_max;
        self.inside.1.notify_all();
    }

    /// The times of all records that are stored, in order.
    pub fn times(&self) -> Vec<i64> {
        let mut times = self.inside().times.clone();
        times.sort_unstable();
        times
    }

    pub fn senders(&self) -> Vec<String> {
        self.inside().windows.keys().cloned().collect()
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.0.lock().unwrap()
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
        let seen = self.inside().windows.get(sender).cloned().unwrap_or_default();
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
        let signal = BackpressureSignal::CLEAR;
        if batch.records.iter().any(|record| Some(&*record.tenant) == self.refused) {
            let (reason, message) = (RejectReason::Malformed, "not from them".to_owned());
            return Reject { seq: batch.seq, reason, retry_after_ms: None, signal, message }
                .encode();
        }
        let is_full = |inside: &mut Inside| inside.batches >= inside.batches_max;
        let mut inside = self.inside.1.wait_while(self.inside(), is_full).unwrap();
        let window = inside.windows.entry(sender.to_owned()).or_default();
        window.settle(batch.settled);
        match window.record(batch.seq) {
            SeqStatus::New => {
                inside.times.extend(batch.records.iter().map(|record| record.time_ns));
                inside.batches += 1;
            }
            SeqStatus::Duplicate => {}
            SeqStatus::TooFar => panic!("batch {} is too far ahead", batch.seq),
        }
        Ack { seqs: [batch.seq].into_iter().collect(), signal }.encode()
    }
}
