use super::peer_manager::halves;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate::frame::FrameKind;
use tidegate_server::tasks::execution::{CapacityReport, ExecuteBody, ExecutionView};
use tidegate_server::tasks::session::{
    Answer, AnswerResult, BufferMetrics, Dispatch, ExecutionUpdate, FrameReader, FrameWriter,
    Interest, Join, JoinAnswer, Lane, SessionError, UpdateAck, UpdateBatch, WorkerState, decode,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longest wait for a message of a manager; only a failed test reaches it.
const LONGEST: Duration = Duration::from_secs(20);

/// A worker that does what its test says.
pub struct PeerWorker {
    pub session: u64,
    pub control_in: FrameReader,
    pub control_out: FrameWriter,
    pub data_in: FrameReader,
    pub data_out: FrameWriter,
    slots: u32,
    seq: u64,
}

/// Message of a manager on the control lane.
#[derive(Debug)]
pub enum Told {
    Execute(Vec<ExecuteBody>),
    Cancel(Vec<String>),
    Lease(Vec<Interest>),
}

/// A connection, and the answer to its join.
pub struct Joined {
    pub answer: JoinAnswer,
    pub reader: FrameReader,
    pub writer: FrameWriter,
}

/// The join of a control connection.
pub fn control_join(name: &str, incarnation: u64, slots: u32) -> Join {
    Join {
        version: 1,
        lane: Lane::Control,
        worker: name.to_owned(),
        incarnation,
        session: None,
        token: None,
        software: "test".to_owned(),
        capacity: Some(capacity(name, slots)),
    }
}

/// Dials a manager, and returns its answer to a join.
pub async fn dial(manager: SocketAddr, join: &Join) -> Joined {
    let mut tcp = TcpStream::connect(manager).await.unwrap();
    tcp.set_nodelay(true).unwrap();
    tcp.write_all(&join.lane.preamble()).await.unwrap();
    let (mut reader, mut writer) = halves(tcp);
    writer.send(FrameKind::Join, join).await.unwrap();
    let answer = timeout(LONGEST, reader.next_of(FrameKind::Join)).await.unwrap().unwrap();
    Joined { answer, reader, writer }
}

fn capacity(name: &str, slots: u32) -> CapacityReport {
    CapacityReport {
        executor_id: name.to_owned(),
        can_accept: slots > 0,
        running: 0,
        max_concurrent: slots,
        available_slots: slots,
        reserved: 0,
        kind: "peer".to_owned(),
        runtimes: vec!["sh".to_owned()],
        sandbox: Vec::new(),
        executions: None,
        draining: false,
    }
}

/// An update of attempt 1 of a task in a state, with its whole output and a counter `rows`.
pub fn update(task: &str, state: &str, output: &str, rows: Option<u64>) -> ExecutionUpdate {
    let json = serde_json::json!({
        "id": format!("{task}@1"), "eval_id": task, "attempt": 1, "fence": 1, "state": state,
        "exit_code": (state == "succeeded").then_some(0),
        "reason": (state == "succeeded").then_some("exit"),
        "next": output.len(),
        "output": [{"stream": "stdout", "text": output}],
        "progress": rows.map(|rows| serde_json::json!({"counters": {"rows": rows}})),
    });
    let view: ExecutionView = serde_json::from_value(json).unwrap();
    ExecutionUpdate { after: 0, view }
}

// === impl PeerWorker ===

impl PeerWorker {
    /// Joins a manager by both lanes.
    pub async fn join(manager: SocketAddr, name: &str, incarnation: u64, slots: u32) -> Self {
        let control = dial(manager, &control_join(name, incarnation, slots)).await;
        let JoinAnswer::Welcome(welcome) = control.answer else { panic!("{:?}", control.answer) };
        let join = Join {
            lane: Lane::Data,
            session: Some(welcome.session),
            capacity: None,
            ..control_join(name, incarnation, slots)
        };
        let data = dial(manager, &join).await;
        assert!(matches!(data.answer, JoinAnswer::Welcome(_)), "{:?}", data.answer);
        Self {
            session: welcome.session,
            control_in: control.reader,
            control_out: control.writer,
            data_in: data.reader,
            data_out: data.writer,
            slots,
            seq: 0,
        }
    }

    /// Next message of the manager on the control lane.
    pub async fn told(&mut self) -> Result<Told, SessionError> {
        let frame = timeout(LONGEST, self.control_in.next()).await.unwrap()?;
        Ok(match frame.kind {
            FrameKind::Execute => Told::Execute(decode::<Dispatch>(&frame)?.executes),
            FrameKind::Cancel => Told::Cancel(decode(&frame)?),
            FrameKind::Lease => Told::Lease(decode(&frame)?),
            other => panic!("{other} on the control lane"),
        })
    }

    /// Next dispatch; renewals before it are answered.
    pub async fn dispatched(&mut self) -> ExecuteBody {
        loop {
            match self.told().await.unwrap() {
                Told::Execute(mut bodies) => return bodies.remove(0),
                Told::Lease(_) => self.report().await,
                Told::Cancel(ids) => panic!("{ids:?} cancelled"),
            }
        }
    }

    /// Answers a request about an execution.
    pub async fn answer(&mut self, results: Vec<(String, AnswerResult)>) {
        let answers = results.into_iter().map(|(id, result)| Answer { id, result }).collect();
        let state = WorkerState { answers, capacity: None };
        self.control_out.send(FrameKind::State, &state).await.unwrap();
    }

    /// Starts the next dispatch, and returns its task.
    pub async fn accept(&mut self) -> String {
        let body = self.dispatched().await;
        let id = format!("{}@{}", body.eval_id, body.attempt);
        self.answer(vec![(id, AnswerResult::Started { fence: 1 })]).await;
        body.eval_id
    }

    /// Reports the capacity, as the answer to a renewal does.
    pub async fn report(&mut self) {
        let capacity = Some(capacity("peer", self.slots));
        let state = WorkerState { answers: Vec::new(), capacity };
        self.control_out.send(FrameKind::State, &state).await.unwrap();
    }

    /// Sends updates as one batch, and returns its number.
    pub async fn send(&mut self, updates: Vec<ExecutionUpdate>, merged: bool) -> u64 {
        self.seq += 1;
        let batch = UpdateBatch { seq: self.seq, merged, updates };
        self.data_out.send(FrameKind::Progress, &batch).await.unwrap();
        self.seq
    }

    /// Next acknowledgement.
    pub async fn acked(&mut self) -> UpdateAck {
        timeout(LONGEST, self.data_in.next_of(FrameKind::ProgressAck)).await.unwrap().unwrap()
    }

    /// Sends updates as one batch, and returns its acknowledgement.
    pub async fn tell(&mut self, updates: Vec<ExecutionUpdate>, merged: bool) -> UpdateAck {
        let seq = self.send(updates, merged).await;
        loop {
            let ack = self.acked().await;
            if ack.seq == seq {
                return ack;
            }
        }
    }

    pub async fn send_debug(&mut self, debug: &BufferMetrics) {
        self.data_out.send(FrameKind::Debug, debug).await.unwrap();
    }
}

/// Progress of so many tasks that nobody submitted, each with one counter.
pub fn progress_of(first: usize, count: usize) -> Vec<ExecutionUpdate> {
    (first..first + count)
        .map(|nth| update(&format!("p{nth}"), "running", "", Some(nth as u64)))
        .collect()
}
