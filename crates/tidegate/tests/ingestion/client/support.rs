//! A server in a few lines: it stores what comes, once, and answers as its plan says.

use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};
use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate::client::{ClientConfig, Connector};
use tidegate::frame::{
    Ack, Batch, FrameKind, FrameLimits, Hello, Reassembler, Reject, RejectReason, Welcome,
};
use tidegate::sequence::{SeqStatus, SeqWindow};
use tidegate::signal::{BackpressureLevel, BackpressureSignal, LevelConfig, LevelGauge};
use tidegate::usage::{Names, UsageRecord};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep};

/// What a server has, and how it behaves. Clones share it.
#[derive(Clone)]
pub struct World {
    inside: Arc<Mutex<Inside>>,
}

struct Inside {
    windows: BTreeMap<String, SeqWindow>,
    /// The times of records, by which tests tell them apart.
    stored: Vec<i64>,
    repeats: u64,
    too_far: u64,
    /// Each batch that came: when, under which number, with how many records.
    came: Vec<(Instant, u64, usize)>,
    connections: u64,
    limits: FrameLimits,
    in_flight_max: u32,
    plans: VecDeque<Plan>,
    last_plan: Plan,
}

/// How a server treats one connection.
#[derive(Clone)]
pub struct Plan {
    /// Refuse it.
    pub refuse: bool,
    /// Close it when so many bytes were read.
    pub read_max: usize,
    /// Close it when so many bytes were written.
    pub write_max: usize,
    /// Say nothing after the welcome.
    pub mute: bool,
    /// Say this instead of a welcome.
    pub greeting: Option<Bytes>,
    /// How long an answer takes.
    pub delay: Duration,
    /// How to answer a batch; by default it is stored and acknowledged.
    pub answer: Arc<dyn Fn(&Batch) -> Answer + Send + Sync>,
}

/// How to answer a batch.
pub enum Answer {
    /// Store it, and say so.
    Ack(BackpressureSignal),
    /// Don't.
    Reject(RejectReason, Option<u32>, BackpressureSignal),
    /// Store it, and send these bytes.
    Raw(Bytes),
}

/// Makes connections through memory.
pub struct Pipes(pub World);

impl World {
    pub fn new() -> Self {
        let inside = Inside {
            windows: BTreeMap::new(),
            stored: Vec::new(),
            repeats: 0,
            too_far: 0,
            came: Vec::new(),
            connections: 0,
            limits: FrameLimits::default(),
            in_flight_max: 1024,
            plans: VecDeque::new(),
            last_plan: Plan::default(),
        };
        Self { inside: Arc::new(Mutex::new(inside)) }
    }

    /// The first connections follow these, one each; those behind them the last.
    pub fn plan(self, plans: impl IntoIterator<Item = Plan>, last: Plan) -> Self {
        self.inside(|inside| {
            (inside.plans, inside.last_plan) = (plans.into_iter().collect(), last)
        });
        self
    }

    /// All connections from now on follow this.
    pub fn change(&self, plan: Plan) {
        self.inside(|inside| (inside.plans, inside.last_plan) = (VecDeque::new(), plan));
    }

    pub fn limits(self, limits: FrameLimits, in_flight_max: u32) -> Self {
        self.inside(|inside| (inside.limits, inside.in_flight_max) = (limits, in_flight_max));
        self
    }

    /// The records that are stored, in order of their times.
    pub fn stored(&self) -> Vec<i64> {
        let mut stored = self.inside(|inside| inside.stored.clone());
        stored.sort_unstable();
        stored
    }

    pub fn repeats(&self) -> u64 {
        self.inside(|inside| inside.repeats)
    }

    /// How often a batch came from beyond the window. No sender may do that.
    pub fn too_far(&self) -> u64 {
        self.inside(|inside| inside.too_far)
    }

    pub fn came(&self) -> Vec<(Instant, u64, usize)> {
        self.inside(|inside| inside.came.clone())
    }

    pub fn connections(&self) -> u64 {
        self.inside(|inside| inside.connections)
    }

    fn inside<R>(&self, look: impl FnOnce(&mut Inside) -> R) -> R {
        look(&mut self.inside.lock().unwrap())
    }

    pub fn next_plan(&self) -> Plan {
        self.inside(|inside| {
            inside.connections += 1;
            let last = inside.last_plan.clone();
            inside.plans.pop_front().unwrap_or(last)
        })
    }

    /// Stores a batch as a store does: settle, look, count once. Tells whether it may be acknowledged.
    fn store(&self, sender: &str, batch: &Batch) -> bool {
        self.inside(|inside| {
            let window = inside.windows.entry(sender.to_owned()).or_default();
            window.settle(batch.settled);
            match window.record(batch.seq) {
                SeqStatus::New => {
                    inside.stored.extend(batch.records.iter().map(|record| record.time_ns))
                }
                SeqStatus::Duplicate => inside.repeats += 1,
                SeqStatus::TooFar => inside.too_far += 1,
            }
            inside.windows[sender].status(batch.seq) == SeqStatus::Duplicate
        })
    }

    fn welcome(&self, sender: &str) -> Welcome {
        self.inside(|inside| {
            let seen = inside.windows.get(sender).cloned().unwrap_or_default();
            Welcome {
                version: 1,
                limits: inside.limits,
                batches_in_flight_max: inside.in_flight_max,
                settled_low: seen.low(),
                seen: Some(seen),
                signal: BackpressureSignal::CLEAR,
            }
        })
    }

    /// Serves one connection until it ends or its plan ends it.
    pub async fn serve(self, mut io: impl AsyncRead + AsyncWrite + Unpin, plan: Plan) {
        let (mut frames, mut names) = (Reassembler::new(FrameLimits::default()), Names::default());
        let (mut read_left, mut write_left) = (plan.read_max, plan.write_max);
        let mut sender = None;
        while read_left > 0 {
            let mut buffer = BytesMut::with_capacity(4096);
            match (&mut io).take(read_left as u64).read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(read) => read_left -= read,
            }
            frames.push(buffer.freeze());
            while let Some(frame) = frames.next().unwrap() {
                let answer = match (frame.kind, &sender) {
                    (FrameKind::Hello, None) => {
                        let name = Hello::decode(&frame).unwrap().sender.to_string();
                        let welcome = self.welcome(&name).encode();
                        sender = Some(name);
                        plan.greeting.clone().unwrap_or(welcome)
                    }
                    (FrameKind::Batch, Some(sender)) => {
                        let limits = FrameLimits { frame_bytes_max: 1 << 20, ..Default::default() };
                        let batch = Batch::decode(&frame, &limits, &mut names).unwrap();
                        match self.answer(sender, &batch, &plan).await {
                            Some(answer) => answer,
                            None => continue,
                        }
                    }
                    other => panic!("unexpected: {other:?}"),
                };
                let part = &answer[..answer.len().min(write_left)];
                write_left -= part.len();
                if io.write_all(part).await.is_err() || write_left == 0 {
                    return;
                }
            }
        }
    }

    async fn answer(&self, sender: &str, batch: &Batch, plan: &Plan) -> Option<Bytes> {
        let came = (Instant::now(), batch.seq, batch.records.len());
        self.inside(|inside| inside.came.push(came));
        if plan.mute {
            return None;
        }
        if !plan.delay.is_zero() {
            sleep(plan.delay).await;
        }
        let signal = BackpressureSignal::CLEAR;
        match (plan.answer)(batch) {
            Answer::Reject(reason, retry_after_ms, signal) => {
                Some(reject(batch.seq, reason, retry_after_ms, signal))
            }
            Answer::Ack(signal) if self.store(sender, batch) => {
                Some(Ack { seqs: [batch.seq].into_iter().collect(), signal }.encode())
            }
            Answer::Raw(bytes) if self.store(sender, batch) => Some(bytes),
            _ => Some(reject(batch.seq, RejectReason::TooFar, Some(100), signal)),
        }
    }
}

pub fn reject(
    seq: u64,
    reason: RejectReason,
    retry_after_ms: Option<u32>,
    signal: BackpressureSignal,
) -> Bytes {
    let message = "as planned".to_owned();
    Reject { seq, reason, retry_after_ms, signal, message }.encode()
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            refuse: false,
            read_max: usize::MAX,
            write_max: usize::MAX,
            mute: false,
            greeting: None,
            delay: Duration::ZERO,
            answer: Arc::new(|_| Answer::Ack(BackpressureSignal::CLEAR)),
        }
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { refuse, read_max, write_max, mute, delay, .. } = self;
        write!(f, "Plan {{ {refuse} read {read_max} write {write_max} mute {mute} {delay:?} }}")
    }
}

impl Plan {
    pub fn answering(answer: impl Fn(&Batch) -> Answer + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), ..Self::default() }
    }

    pub fn refusing() -> Self {
        Self { refuse: true, ..Self::default() }
    }

    pub fn greeting(greeting: impl Into<Bytes>) -> Self {
        Self { greeting: Some(greeting.into()), ..Self::default() }
    }

    pub fn mute() -> Self {
        Self { mute: true, ..Self::default() }
    }
}

impl Connector for Pipes {
    type Io = DuplexStream;

    async fn connect(&mut self) -> io::Result<DuplexStream> {
        let plan = self.0.next_plan();
        if plan.refuse {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (ours, theirs) = tokio::io::duplex(16 * 1024);
        tokio::spawn(self.0.clone().serve(theirs, plan));
        Ok(ours)
    }

    fn server(&self) -> String {
        "the test's server".to_owned()
    }
}

/// Never connects, and never says so.
pub struct BlackHole;

impl Connector for BlackHole {
    type Io = DuplexStream;

    async fn connect(&mut self) -> io::Result<DuplexStream> {
        pending().await
    }

    fn server(&self) -> String {
        "nowhere".to_owned()
    }
}

/// A client's configuration with small batches, so that there are many.
pub fn config(sender: &str) -> ClientConfig {
    let mut config = ClientConfig::new(sender.parse().unwrap());
    config.batch.batch_records_max = 10;
    config.buffer_records = 200;
    config
}

/// A record that its time tells from all others.
pub fn record(time_ns: i64) -> UsageRecord {
    UsageRecord {
        tenant: format!("tenant-{}", time_ns % 7).into(),
        meter: "tokens".into(),
        quantity: (time_ns % 100).into(),
        time_ns,
        labels: "".into(),
    }
}

pub fn records(times: std::ops::Range<i64>) -> Vec<UsageRecord> {
    times.map(record).collect()
}

pub fn signal(level: BackpressureLevel) -> BackpressureSignal {
    LevelGauge::new(LevelConfig::default()).unwrap().signal_of(level)
}

/// Runs in virtual time.
pub fn paused<F: Future>(future: F) -> F::Output {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap().block_on(future)
}
