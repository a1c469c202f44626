#![allow(clippy::unwrap_used)] // A benchmark that cannot go on should say where.

//! Worker sessions under load: updates a manager takes in, dispatches meanwhile, and no-op tasks by session and by
//! HTTP. `bench/progress.py` runs it and judges; prints one JSON object.
//!
//! `cargo bench -p tidegate-server --bench progress -- flood --sessions 1000 --rate 100 --seconds 5`
//! `cargo bench -p tidegate-server --bench progress -- noop --tasks 2000 --link session`, `--frames` to count them

use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidegate::MessagePriority;
use tidegate::frame::FrameKind;
use tidegate::ledger::MemoryLedger;
use tidegate::task::{TaskId, TaskSpec};
use tidegate::tasks::FjallTaskStore;
use tidegate_server::tasks::execution::{CapacityReport, ExecutionView};
use tidegate_server::tasks::executor::{ExecutorConfig, MockRunner, Runner, Worker};
use tidegate_server::tasks::manager::{
    ExecutorTarget, HttpTarget, HubSettings, Manager, ManagerExecutors, ManagerHandle,
    ManagerSettings, SessionPort, Submit,
};
use tidegate_server::tasks::session::{
    Answer, AnswerResult, Dispatch, ExecutionUpdate, FrameReader, FrameWriter, Interest, Join,
    JoinAnswer, Lane, UpdateAck, UpdateBatch, WorkerState, decode, encode,
};
use tidegate_server::tasks::worker::{SessionWorker, WorkerSettings};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{MissedTickBehavior, interval, sleep};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let number = |name: &str, default: u64| {
        let at = args.iter().position(|arg| arg == name);
        at.and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    // A session takes four descriptors, because both ends are in this process.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let folder = std::env::temp_dir().join(format!("tidegate-progress-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let report = match args.first().map(String::as_str) {
        Some("flood") => flood(
            &folder,
            number("--sessions", 1_000),
            number("--rate", 100),
            number("--seconds", 5),
        ),
        Some("noop") => {
            let is_given = |name: &str| args.iter().any(|arg| arg == name);
            let (by_session, counts) = (is_given("session"), is_given("--frames"));
            noop(&folder, number("--tasks", 2_000), by_session, counts)
        }
        // A plain `cargo bench` or `cargo test --benches` only sees that it works.
        _ => flood(&folder, 20, 20, 1),
    };
    let _ = std::fs::remove_dir_all(&folder);
    println!("{report}");
}

/// A manager with a port for workers, and executors that it calls.
fn manager(folder: &std::path::Path, targets: Vec<ExecutorTarget>) -> (Manager, SocketAddr) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(FjallTaskStore::open(folder.join("tasks"))).unwrap();
    let port = SessionPort::bind("127.0.0.1:0".parse().unwrap(), None).unwrap();
    let address = port.address();
    let hub = HubSettings {
        manager: "bench".to_owned(),
        lease: Duration::from_secs(15),
        updates_max: 16_384,
        ..HubSettings::default()
    };
    let executors = ManagerExecutors { targets, workers: Some((port, hub)) };
    let ledger = Arc::new(MemoryLedger::new());
    let grace = Duration::from_secs(5);
    let settings = ManagerSettings::default();
    let manager = Manager::start(settings, executors, Arc::new(store), ledger, runtime, grace);
    (manager.unwrap(), address)
}

fn submission(name: String, code: &str) -> Submit {
    let spec = TaskSpec {
        runtime: "sh".to_owned(),
        code: code.to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        priority: MessagePriority::Normal,
        timeout_ms: 600_000,
        retries: 0,
    };
    Submit { id: Some(TaskId::new(&name).unwrap()), key: None, client: None, spec }
}

// --- no-op tasks ---

fn noop(folder: &std::path::Path, tasks: u64, by_session: bool, counts: bool) -> serde_json::Value {
    const SLOTS: u32 = 64;
    let runner = || Runner::Mock(MockRunner::new(Duration::ZERO, vec!["sh".to_owned()]));
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let frames = Arc::new(AtomicU64::new(0));
    let config = ExecutorConfig::new("bench-worker", SLOTS);
    let (manager, _worker): (Manager, Box<dyn std::any::Any>) = match by_session {
        true => {
            let (manager, address) = manager(folder, Vec::new());
            // The relay that counts takes its share of the machine.
            let dialled = match counts {
                true => runtime.block_on(relay(address, Arc::clone(&frames))),
                false => address,
            };
            let settings = WorkerSettings {
                manager: dialled.to_string().parse().unwrap(),
                token: None,
                executor: config,
            };
            (manager, Box::new(SessionWorker::start(settings, runner()).unwrap()))
        }
        false => {
            let listen = "127.0.0.1:0".parse().unwrap();
            let worker = Worker::start(listen, config, runner()).unwrap();
            let url = format!("http://{}", worker.address());
            let target = ExecutorTarget::Http(HttpTarget { url, token: None, tls: None });
            (manager(folder, vec![target]).0, Box::new(worker))
        }
    };
    let handle = manager.handle().clone();
    runtime.block_on(async {
        while handle.executors().await.unwrap().executors.iter().all(|executor| !executor.up) {
            sleep(Duration::from_millis(5)).await;
        }
        let (began, counted) = (Instant::now(), frames.load(Ordering::Relaxed));
        run_all(&handle, tasks).await;
        let seconds = began.elapsed().as_secs_f64();
        let sent = frames.load(Ordering::Relaxed) - counted;
        json!({
            "tasks_per_s": tasks as f64 / seconds,
            "frames_per_task": counts.then_some(sent as f64 / tasks as f64),
        })
    })
}

/// Submits tasks, 256 at a time, and waits for the end of each.
async fn run_all(handle: &ManagerHandle, tasks: u64) {
    let next = Arc::new(AtomicU64::new(0));
    let mut clients = Vec::new();
    for _ in 0..256 {
        let (handle, next) = (handle.clone(), Arc::clone(&next));
        clients.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= tasks {
                    return;
                }
                let (view, _) =
                    handle.submit(submission(format!("n{number}"), "sleep 0ms")).await.unwrap();
                let mut watch = handle.watch(&view.id).await.unwrap();
                while !watch.view.status.is_over() && watch.next().await.unwrap().is_some() {}
            }
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
}

/// Forwards connections to the manager, and counts the frames in both directions.
async fn relay(manager: SocketAddr, frames: Arc<AtomicU64>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = TcpStream::connect(manager).await.unwrap();
            near.set_nodelay(true).unwrap();
            far.set_nodelay(true).unwrap();
            let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
            // The first four bytes of a worker name its lane.
            tokio::spawn(copy(near_in, far_out, 4, Arc::clone(&frames)));
            tokio::spawn(copy(far_in, near_out, 0, Arc::clone(&frames)));
        }
    });
    address
}

async fn copy(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut skip: usize,
    frames: Arc<AtomicU64>,
) {
    let (mut buffer, mut head) = (vec![0; 64 << 10], Vec::new());
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        for byte in &buffer[..read] {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            head.push(*byte);
            if let Ok(length) = <[u8; 4]>::try_from(&head[..]) {
                skip = u32::from_be_bytes(length) as usize;
                head.clear();
                frames.fetch_add(1, Ordering::Relaxed);
            }
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

// --- a flood of progress ---

fn flood(folder: &std::path::Path, sessions: u64, rate: u64, seconds: u64) -> serde_json::Value {
    let (manager, address) = manager(folder, Vec::new());
    // The workers are other machines in truth: here they give way to the manager.
    let give_way = || {
        let _ = rustix::process::nice(10);
    };
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .on_thread_start(give_way)
        .enable_all()
        .build();
    let runtime = runtime.unwrap();
    let (sent, acked) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let flows = Arc::new(AtomicBool::new(false));
    let (dispatched, mut arrivals) = mpsc::unbounded_channel();
    let handle = manager.handle().clone();
    runtime.block_on(async {
        for number in 0..sessions {
            let counts = (Arc::clone(&sent), Arc::clone(&acked));
            let flow = Flow { rate, flows: Arc::clone(&flows) };
            let dispatched = dispatched.clone();
            tokio::spawn(simulate(address, number, flow, counts, dispatched));
        }
        let connected = || {
            let list = manager.workers().unwrap().list();
            list.workers.iter().filter(|worker| worker.connected).count() as u64
        };
        while connected() < sessions {
            sleep(Duration::from_millis(20)).await;
        }
        for number in 0..sessions {
            handle.submit(submission(format!("f{number}"), "hang")).await.unwrap();
        }
        for _ in 0..sessions {
            arrivals.recv().await.unwrap();
        }
        let quiet = dispatch_times(&handle, &mut arrivals, "q", 100).await;
        flows.store(true, Ordering::Relaxed);
        sleep(Duration::from_millis(500)).await;
        let before = (cpu("tidegate-progre"), cpu("tidegate-manage"));
        let (began, from) = (Instant::now(), acked.load(Ordering::Relaxed));
        let flooded = dispatch_times(&handle, &mut arrivals, "d", 200).await;
        while began.elapsed() < Duration::from_secs(seconds) {
            sleep(Duration::from_millis(20)).await;
        }
        let elapsed = began.elapsed().as_secs_f64();
        let updates = acked.load(Ordering::Relaxed) - from;
        let (progress, actor) =
            (cpu("tidegate-progre") - before.0, cpu("tidegate-manage") - before.1);
        let list = manager.workers().unwrap().list();
        json!({
            "sessions": connected(),
            "updates_per_s": updates as f64 / elapsed,
            "asked_per_s": sessions * rate,
            "progress_cores": progress / elapsed,
            "manager_cores": actor / elapsed,
            "dispatch_ms": { "quiet": quiet, "flooded": flooded },
            "level": list.stats_buffer.level.name(),
            "resident_mib": resident_mib(),
        })
    })
}

/// Median and p99 of the time from the end of a submission to the arrival of its execution at a worker, in ms.
async fn dispatch_times(
    handle: &ManagerHandle,
    arrivals: &mut mpsc::UnboundedReceiver<Instant>,
    prefix: &str,
    count: u64,
) -> serde_json::Value {
    let mut times = Vec::new();
    for number in 0..count {
        let (_, _) = handle.submit(submission(format!("{prefix}{number}"), "over")).await.unwrap();
        let submitted = Instant::now();
        let arrived = arrivals.recv().await.unwrap();
        times.push(arrived.saturating_duration_since(submitted).as_secs_f64() * 1e3);
        sleep(Duration::from_millis(5)).await;
    }
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    json!({ "p50": at(0.5), "p99": at(0.99) })
}

struct Flow {
    rate: u64,
    flows: Arc<AtomicBool>,
}

/// A worker of two slots: an execution that reports for ever, and others that end at once.
async fn simulate(
    manager: SocketAddr,
    number: u64,
    flow: Flow,
    (sent, acked): (Arc<AtomicU64>, Arc<AtomicU64>),
    dispatched: mpsc::UnboundedSender<Instant>,
) {
    let name = format!("w{number}");
    let (mut control_in, mut control_out, session) =
        join(manager, &name, Lane::Control, None).await;
    let (mut data_in, data_out, _) = join(manager, &name, Lane::Data, Some(session)).await;
    let data = Arc::new(Mutex::new((data_out, 0_u64)));
    tokio::spawn(async move {
        while let Ok(ack) = data_in.next_of::<UpdateAck>(FrameKind::ProgressAck).await {
            let before = acked.load(Ordering::Relaxed);
            let _ = (ack, before);
            acked.fetch_add(1, Ordering::Relaxed);
        }
    });
    while let Ok(frame) = control_in.next().await {
        let mut state = WorkerState::default();
        match frame.kind {
            FrameKind::Execute => {
                for body in decode::<Dispatch>(&frame).unwrap().executes {
                    let _ = dispatched.send(Instant::now());
                    let id = format!("{}@{}", body.eval_id, body.attempt);
                    state.answers.push(Answer {
                        id: id.clone(),
                        result: AnswerResult::Started { fence: 1 },
                    });
                    match body.code.as_str() {
                        "over" => {
                            let view = view(&id, &body.eval_id, "succeeded", 0);
                            let mut data = data.lock().await;
                            push(&mut data, view).await;
                        }
                        _ => {
                            let (data, flows, sent) =
                                (Arc::clone(&data), Arc::clone(&flow.flows), Arc::clone(&sent));
                            let every = Duration::from_secs_f64(1.0 / flow.rate as f64);
                            tokio::spawn(report(data, flows, sent, (id, body.eval_id), every));
                        }
                    }
                }
            }
            FrameKind::Cancel => {
                for id in decode::<Vec<String>>(&frame).unwrap() {
                    state.answers.push(Answer { id, result: AnswerResult::Cancelled });
                }
            }
            _ => {
                let _: Vec<Interest> = decode(&frame).unwrap();
            }
        }
        if control_out.send(FrameKind::State, &state).await.is_err() {
            return;
        }
    }
}

async fn report(
    data: Arc<Mutex<(FrameWriter, u64)>>,
    flows: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    (id, task): (String, String),
    every: Duration,
) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    for count in 1_u64.. {
        ticks.tick().await;
        if !flows.load(Ordering::Relaxed) {
            continue;
        }
        let mut data = data.lock().await;
        push(&mut data, view(&id, &task, "running", count)).await;
        sent.fetch_add(1, Ordering::Relaxed);
    }
}

async fn push((writer, seq): &mut (FrameWriter, u64), view: ExecutionView) {
    *seq += 1;
    let updates = vec![ExecutionUpdate { after: 0, view }];
    let mut out = Vec::new();
    encode(&mut out, FrameKind::Progress, &UpdateBatch { seq: *seq, merged: true, updates })
        .unwrap();
    let _ = writer.write(&out).await;
}

fn view(id: &str, task: &str, state: &str, count: u64) -> ExecutionView {
    let mut json = json!({
        "id": id, "eval_id": task, "attempt": 1, "fence": 1, "state": state, "progress_version": count,
    });
    if count > 0 {
        json["progress"] =
            json!({ "counters": { "rows": count * 10 }, "gauges": { "loss": 0.5 }, "done": count });
    }
    serde_json::from_value(json).unwrap()
}

async fn join(
    manager: SocketAddr,
    name: &str,
    lane: Lane,
    session: Option<u64>,
) -> (FrameReader, FrameWriter, u64) {
    let mut tcp = TcpStream::connect(manager).await.unwrap();
    tcp.set_nodelay(true).unwrap();
    tcp.write_all(&lane.preamble()).await.unwrap();
    let (read, write) = tcp.into_split();
    let (mut reader, mut writer) = (FrameReader::new(read), FrameWriter::new(write));
    let capacity: CapacityReport = serde_json::from_value(json!({
        "executor_id": name, "can_accept": true, "running": 0, "max_concurrent": 2,
        "available_slots": 2, "runtimes": ["sh"], "executions": [],
    }))
    .unwrap();
    let join = Join {
        version: 1,
        lane,
        worker: name.to_owned(),
        incarnation: 1,
        session,
        token: None,
        software: "bench".to_owned(),
        capacity: (lane == Lane::Control).then_some(capacity),
    };
    writer.send(FrameKind::Join, &join).await.unwrap();
    match reader.next_of::<JoinAnswer>(FrameKind::Join).await.unwrap() {
        JoinAnswer::Welcome(welcome) => (reader, writer, welcome.session),
        JoinAnswer::Refused { message, .. } => panic!("{message}"),
    }
}

// --- this process ---

/// CPU time of the threads of this name so far, in seconds.
fn cpu(name: &str) -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let of = |path: PathBuf| {
        let stat = std::fs::read_to_string(path.join("stat")).ok()?;
        let (head, rest) = stat.rsplit_once(')')?;
        head.contains(name).then(|| {
            let fields: Vec<&str> = rest.split_whitespace().collect();
            // utime and stime, in ticks of 10 ms.
            fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()
        })
    };
    tasks.filter_map(|task| of(task.ok()?.path())).sum::<f64>() / 100.0
}

fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1024.0
}
