use std::net::SocketAddr;
use std::time::Duration;
use tidegate::frame::{FrameKind, RawFrame};
use tidegate::signal::{BackpressureLevel, BackpressureSignal};
use tidegate_server::tasks::execution::ExecuteBody;
use tidegate_server::tasks::session::{
    AnswerResult, Dispatch, FrameReader, FrameWriter, Interest, Join, JoinAnswer, Lane,
    PREAMBLE_BYTES, UpdateAck, UpdateBatch, Welcome, WorkerState, WorkerStats, decode,
};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout_at};

/// A manager that does what its test says.
pub struct PeerManager {
    listener: TcpListener,
    sessions: u64,
}

/// A session with a worker.
pub struct PeerSession {
    control_in: FrameReader,
    control_out: FrameWriter,
    data_in: FrameReader,
    data_out: FrameWriter,
    /// Statistics that have arrived.
    pub stats: Vec<WorkerStats>,
    /// Frames of metrics for debugging that have arrived.
    pub debugs: u64,
}

/// Updates, and the time at which they arrived.
pub struct Arrived {
    pub at: Instant,
    pub batch: UpdateBatch,
}

/// A signal as a manager at this level sends it.
pub fn signal(level: BackpressureLevel, delay_ms: u32, ttl_ms: u32) -> BackpressureSignal {
    BackpressureSignal {
        level,
        delay_ms,
        batch_only: level >= BackpressureLevel::Batch,
        drop_non_critical: level >= BackpressureLevel::Reject,
        ttl_ms,
    }
}

// === impl PeerManager ===

impl PeerManager {
    pub async fn bind() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap(), sessions: 0 }
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// Waits for the next session of a worker.
    pub async fn session(&mut self) -> PeerSession {
        self.sessions += 1;
        let (control_in, control_out) = self.welcome(Lane::Control).await;
        let (data_in, data_out) = self.welcome(Lane::Data).await;
        PeerSession { control_in, control_out, data_in, data_out, stats: Vec::new(), debugs: 0 }
    }

    async fn welcome(&self, lane: Lane) -> (FrameReader, FrameWriter) {
        let (mut tcp, _) = self.listener.accept().await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let mut preamble = [0; PREAMBLE_BYTES];
        tcp.read_exact(&mut preamble).await.unwrap();
        assert_eq!(Lane::of_preamble(preamble), Some(lane));
        let (mut reader, mut writer) = halves(tcp);
        let join: Join = reader.next_of(FrameKind::Join).await.unwrap();
        assert_eq!(join.lane, lane);
        let (session, manager) = (self.sessions, "peer".to_owned());
        let welcome = Welcome { session, manager, silence_ms_max: 60_000 };
        writer.send(FrameKind::Join, &JoinAnswer::Welcome(welcome)).await.unwrap();
        (reader, writer)
    }
}

pub fn halves(tcp: TcpStream) -> (FrameReader, FrameWriter) {
    let (read, write) = tcp.into_split();
    (FrameReader::new(read), FrameWriter::new(write))
}

// === impl PeerSession ===

impl PeerSession {
    async fn answer(&mut self) -> WorkerState {
        self.control_in.next_of(FrameKind::State).await.unwrap()
    }

    /// Starts attempt 1 of a task, and returns its answer.
    pub async fn execute(&mut self, task: &str, code: &str) -> AnswerResult {
        let body = ExecuteBody {
            eval_id: task.to_owned(),
            code: code.to_owned(),
            attempt: 1,
            ..ExecuteBody::default()
        };
        let dispatch = Dispatch { executes: vec![body], reserves: Vec::new() };
        self.control_out.send(FrameKind::Execute, &dispatch).await.unwrap();
        self.answer().await.answers.remove(0).result
    }

    pub async fn start(&mut self, task: &str, code: &str) {
        let answer = self.execute(task, code).await;
        assert!(matches!(answer, AnswerResult::Started { .. }), "{answer:?}");
    }

    /// Cancels attempt 1 of a task, and returns its answer.
    pub async fn cancel(&mut self, task: &str) -> AnswerResult {
        self.control_out.send(FrameKind::Cancel, &vec![format!("{task}@1")]).await.unwrap();
        self.answer().await.answers.remove(0).result
    }

    /// Renews the lease of attempt 1 of a task, and asks for its output after an offset.
    pub async fn renew(&mut self, task: &str, after: u64) -> WorkerState {
        let interest = Interest { id: format!("{task}@1"), fence: None, after };
        self.control_out.send(FrameKind::Lease, &vec![interest]).await.unwrap();
        self.answer().await
    }

    /// Acknowledges updates with a signal.
    pub async fn ack(&mut self, seq: u64, signal: BackpressureSignal) {
        self.send_ack(&UpdateAck { seq, signal, ..UpdateAck::default() }).await;
    }

    /// Acknowledges the durable ends of attempts 1.
    pub async fn ack_ends(&mut self, seq: u64, signal: BackpressureSignal, tasks: &[&str]) {
        let ended = tasks.iter().map(|task| format!("{task}@1")).collect();
        self.send_ack(&UpdateAck { seq, signal, ended, refused: 0 }).await;
    }

    pub async fn send_ack(&mut self, ack: &UpdateAck) {
        self.data_out.send(FrameKind::ProgressAck, ack).await.unwrap();
    }

    /// Next updates.
    pub async fn updates(&mut self) -> Arrived {
        loop {
            let frame = self.data_in.next().await.unwrap();
            if let Some(batch) = self.take(&frame) {
                return Arrived { at: Instant::now(), batch };
            }
        }
    }

    /// Acknowledges all updates of a time with one signal, and returns them.
    pub async fn updates_for(
        &mut self,
        time: Duration,
        signal: BackpressureSignal,
    ) -> Vec<Arrived> {
        let (until, mut all) = (Instant::now() + time, Vec::new());
        while let Ok(arrived) = timeout_at(until, self.updates()).await {
            self.ack(arrived.batch.seq, signal).await;
            all.push(arrived);
        }
        all
    }

    /// Waits for the updates of an attempt 1 that satisfy a condition; acknowledges all with one signal.
    pub async fn updates_until(
        &mut self,
        signal: BackpressureSignal,
        wanted: impl Fn(&UpdateBatch) -> bool,
    ) -> Arrived {
        loop {
            let arrived = self.updates().await;
            self.ack(arrived.batch.seq, signal).await;
            if wanted(&arrived.batch) {
                return arrived;
            }
        }
    }

    fn take(&mut self, frame: &RawFrame) -> Option<UpdateBatch> {
        match frame.kind {
            FrameKind::Progress => return Some(decode(frame).unwrap()),
            FrameKind::Stats => self.stats.push(decode(frame).unwrap()),
            FrameKind::Debug => self.debugs += 1,
            other => panic!("{other} on the data lane"),
        }
        None
    }
}

/// True when a batch has the end of attempt 1 of a task.
pub fn has_end(batch: &UpdateBatch, task: &str) -> bool {
    let is_end = |view: &tidegate_server::tasks::execution::ExecutionView| {
        view.eval_id == task && view.ending().is_some()
    };
    batch.updates.iter().any(|update| is_end(&update.view))
}

/// Value of a counter of a task in a batch.
pub fn counter(batch: &UpdateBatch, task: &str, name: &str) -> Option<u64> {
    let update = batch.updates.iter().rev().find(|update| update.view.eval_id == task)?;
    update.view.progress.as_ref()?.counters.get(name).copied()
}
