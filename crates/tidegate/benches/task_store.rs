//! What it costs to keep tasks: durable submissions and whole lives a second from many callers, in a folder and in
//! PostgreSQL, beside plain appends to a file.
//!
//! `cargo bench -p tidegate --bench task_store`
//!
//! Every round measures every case, in turn. CPU is that of this whole process, the callers and the engine's own
//! threads included; PostgreSQL's is not in it. Exit code 1 if fewer than [`SUBMISSIONS_MIN`] tasks a second are
//! submitted to a folder.

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use support::folder::TempFolder;
use support::postgres::Postgres;
use tidegate::MessagePriority;
use tidegate::task::{
    EndReason, Ending, OutputChunk, OutputStream, TaskEvent, TaskId, TaskOutcome, TaskSpec,
    TaskState,
};
use tidegate::tasks::{
    AnyTaskStore, Change, ChangeOutcome, Durability, NewTask, Submission, TaskRecord, TaskStore,
};
use tokio::runtime::Runtime;

/// Odd, so that the median is one that was measured.
const ROUNDS: usize = 3;
const CALLERS: usize = 64;
/// So many a case and round.
const TASKS: usize = 32_000;
/// PostgreSQL gets fewer: it takes longer for each.
const TASKS_POSTGRES: usize = 8_000;
/// What a small fleet may ask of one machine, with a wide margin.
const SUBMISSIONS_MIN: f64 = 5_000.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    /// A file that is synced after as many bytes as one group of all callers has. No index, no states. The floor.
    GroupedFile,
    /// A file that is synced after each task.
    FileEach,
    FolderSubmit,
    FolderLife,
    PostgresSubmit,
    PostgresLife,
}

#[derive(Clone, Copy, Default)]
struct Cost {
    tasks: f64,
    seconds: f64,
    cpu_seconds: f64,
}

fn main() -> ExitCode {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let server = Postgres::start(&[]);
    let rounds: Vec<_> = (0..ROUNDS)
        .map(|round| Case::ALL.map(|case| measure(case, &runtime, &server, round)))
        .collect();
    println!(
        "{CALLERS} callers, {ROUNDS} rounds of {TASKS} tasks ({TASKS_POSTGRES} in PostgreSQL)"
    );
    println!("{:<16} {:>12} {:>14}", "", "tasks/s", "CPU us/task");
    let mut all_hold = true;
    for case in Case::ALL {
        let costs = || rounds.iter().map(|round| round[case as usize]);
        let rate = median(costs().map(|cost| cost.tasks / cost.seconds));
        let cpu_us = median(costs().map(|cost| cost.cpu_seconds * 1e6 / cost.tasks));
        let verdict = match case {
            Case::FolderSubmit if rate >= SUBMISSIONS_MIN => "ok",
            Case::FolderSubmit => "MISSED",
            _ => "",
        };
        all_hold &= verdict != "MISSED";
        println!("{:<16} {rate:>12.0} {cpu_us:>14.1}  {verdict}", format!("{case:?}"));
    }
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure(case: Case, runtime: &Runtime, server: &Postgres, round: usize) -> Cost {
    let folder = TempFolder::new("bench-tasks");
    let place = folder.path().join("store");
    let url = match case {
        Case::GroupedFile => return file(&folder, TASKS, CALLERS),
        Case::FileEach => return file(&folder, TASKS / CALLERS, 1),
        Case::FolderSubmit | Case::FolderLife => place.to_str().expect("a name").to_owned(),
        Case::PostgresSubmit => server.url(&format!("schema=submit_{round}")),
        Case::PostgresLife => server.url(&format!("schema=life_{round}")),
    };
    let tasks = match case {
        Case::FolderSubmit | Case::FolderLife => TASKS,
        _ => TASKS_POSTGRES,
    };
    let whole_life = matches!(case, Case::FolderLife | Case::PostgresLife);
    runtime.block_on(async {
        let store = Arc::new(AnyTaskStore::open(&url).await.expect("a store"));
        let clock = Clock::start();
        let callers = (0..CALLERS).map(|caller| {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..tasks / CALLERS {
                    live(&*store, &format!("task-{caller}-{number}"), whole_life).await;
                }
            })
        });
        let callers: Vec<_> = callers.collect();
        for caller in callers {
            caller.await.expect("it is stored");
        }
        clock.stop(tasks)
    })
}

/// Submits a task, and with its whole life also places it, has it accepted, and keeps its end with its output.
async fn live(store: &impl TaskStore, name: &str, whole: bool) {
    let record = record(name);
    let new = NewTask { record: record.clone(), key: Some(name.into()), fingerprint: [7; 16] };
    assert_eq!(store.submit(new).await.expect("it is stored"), Submission::New);
    if !whole {
        return;
    }
    let ending = Ending::new(TaskOutcome::Succeeded, EndReason::Exit);
    let events = [
        (TaskEvent::Dispatching { executor: "executor-1".into() }, Durability::Process),
        (TaskEvent::Accepted { attempt: 1, fence: 9 }, Durability::Process),
        (TaskEvent::Ended { attempt: 1, ending }, Durability::Power),
    ];
    let mut state = record.state;
    for (event, durability) in events {
        state = state.after(&event, &record.spec, 2).expect("it follows");
        let chunk = || OutputChunk { stream: OutputStream::Stdout, text: "hello\n".to_owned() };
        let output = state.status.is_over().then(|| vec![chunk()]);
        let change = Change { id: record.id.clone(), state: state.clone(), output };
        assert_eq!(
            store.persist(change, durability).await.expect("it is stored"),
            ChangeOutcome::Yes
        );
    }
}

fn record(name: &str) -> TaskRecord {
    let spec = TaskSpec {
        runtime: "python".to_owned(),
        code: "print('hello')\n".repeat(10),
        args: Vec::new(),
        env: BTreeMap::new(),
        priority: MessagePriority::Normal,
        timeout_ms: 60_000,
        retries: 0,
    };
    let state = TaskState::submitted("manager-1", 1);
    TaskRecord { id: TaskId::new(name).expect("a name"), spec: Arc::new(spec), state }
}

/// Appends of about what a submission takes, synced after so many.
fn file(folder: &TempFolder, tasks: usize, at_once: usize) -> Cost {
    let mut file = File::create(folder.path().join("log")).expect("a file");
    let bytes = vec![b'x'; 600 * at_once];
    let clock = Clock::start();
    for _ in 0..tasks / at_once {
        file.write_all(&bytes).expect("there is room");
        file.sync_data().expect("it is durable");
    }
    clock.stop(tasks)
}

fn median(samples: impl Iterator<Item = f64>) -> f64 {
    let mut samples: Vec<f64> = samples.collect();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Time that passes, and time that this process computes.
struct Clock {
    start: Instant,
    cpu_seconds: f64,
}

impl Clock {
    fn start() -> Self {
        Self { cpu_seconds: cpu_seconds(), start: Instant::now() }
    }

    fn stop(self, tasks: usize) -> Cost {
        let seconds = self.start.elapsed().as_secs_f64();
        Cost { tasks: tasks as f64, seconds, cpu_seconds: cpu_seconds() - self.cpu_seconds }
    }
}

/// User and system time, in hundredths of a second, which is what Linux counts in.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let ticks =
        after_name.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

impl Case {
    const ALL: [Self; 6] = [
        Self::GroupedFile,
        Self::FileEach,
        Self::FolderSubmit,
        Self::FolderLife,
        Self::PostgresSubmit,
        Self::PostgresLife,
    ];
}
