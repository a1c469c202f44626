//! Queued tasks that four managers claim from one PostgreSQL: tasks a second, by the number of slots of a claim,
//! and with the end of each task written too.
//!
//! `cargo bench -p tidegate --bench claims`
//!
//! Every round measures every case, in turn. Exit code 1 if fewer than [`CLAIMS_MIN`] tasks a second
//! are claimed by sixteen.

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use support::postgres::Postgres;
use tidegate::MessagePriority;
use tidegate::task::{EndReason, Ending, TaskEvent, TaskId, TaskOutcome, TaskSpec, TaskState};
use tidegate::tasks::{
    Change, ChangeOutcome, Claim, ClaimGroup, Durability, NewTask, PostgresTaskStore, Submission,
    TaskRecord, TaskStore,
};

/// Odd, so that the median is one that was measured.
const ROUNDS: usize = 3;
const MANAGERS: usize = 4;
const TASKS: usize = 12_000;
/// Submissions at once, before the measurement.
const CALLERS: usize = 64;
/// The requirement, on two cores.
const CLAIMS_MIN: f64 = 3_000.0;

/// Slots of a claim, and whether the end of each task is written too.
const CASES: [(usize, bool); 4] = [(1, false), (16, false), (100, false), (16, true)];

fn main() -> ExitCode {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let server = Postgres::start(&[]);
    let rounds: Vec<_> = (0..ROUNDS)
        .map(|round| {
            CASES.map(|(slots, ends)| {
                let url = server.url(&format!("schema=claims_{round}_{slots}_{ends}"));
                // One task a claim is slow: fewer tell the same.
                let tasks = if slots == 1 { TASKS / 4 } else { TASKS };
                runtime.block_on(measure(&url, tasks, slots, ends))
            })
        })
        .collect();
    println!("{MANAGERS} managers, {ROUNDS} rounds of {TASKS} tasks");
    println!("{:<24} {:>12}", "", "tasks/s");
    let mut all_hold = true;
    for (case, (slots, ends)) in CASES.into_iter().enumerate() {
        let mut rates: Vec<_> = rounds.iter().map(|round| round[case]).collect();
        rates.sort_by(f64::total_cmp);
        let rate = rates[ROUNDS / 2];
        let name = format!("{slots} slots{}", if ends { ", with the end" } else { "" });
        let verdict = match (slots, ends) {
            (16, false) if rate >= CLAIMS_MIN => "ok",
            (16, false) => "MISSED",
            _ => "",
        };
        all_hold &= verdict != "MISSED";
        println!("{name:<24} {rate:>12.0}  {verdict}");
    }
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn measure(url: &str, tasks: usize, slots: usize, ends: bool) -> f64 {
    let mut stores = Vec::new();
    for _ in 0..MANAGERS {
        stores.push(Arc::new(PostgresTaskStore::connect(url).await.expect("a store")));
    }
    let callers = (0..CALLERS).map(|caller| {
        let store = Arc::clone(&stores[caller % MANAGERS]);
        tokio::spawn(async move {
            for number in (caller..tasks).step_by(CALLERS) {
                let outcome = store.submit(queued(number)).await.expect("it is stored");
                assert_eq!(outcome, Submission::New);
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("it is stored");
    }
    let (began, left) = (Instant::now(), Arc::new(AtomicUsize::new(tasks)));
    let managers = stores.into_iter().enumerate().map(|(nth, store)| {
        let left = Arc::clone(&left);
        tokio::spawn(manage(store, format!("manager-{nth}"), left, slots, ends))
    });
    for manager in managers.collect::<Vec<_>>() {
        manager.await.expect("it claims");
    }
    tasks as f64 / began.elapsed().as_secs_f64()
}

/// Claims until all tasks are claimed, each once.
async fn manage(
    store: Arc<PostgresTaskStore>,
    owner: String,
    left: Arc<AtomicUsize>,
    slots: usize,
    ends: bool,
) {
    let mut ending = Vec::new();
    while left.load(Ordering::Relaxed) > 0 {
        let executors = (0..slots).map(|slot| format!("executor-{slot}")).collect();
        let groups = vec![ClaimGroup { runtimes: Some(vec!["sh".to_owned()]), executors }];
        let claim = Claim { owner: owner.clone(), groups, due_ms: None, doubt: false };
        let claimed = store.claim(claim).await.expect("it is claimed").tasks;
        left.fetch_sub(claimed.len(), Ordering::Relaxed);
        if ends {
            for record in claimed {
                let store = Arc::clone(&store);
                ending.push(tokio::spawn(async move { end(&store, record).await }));
            }
        }
    }
    for end in ending {
        end.await.expect("it is stored");
    }
}

async fn end(store: &PostgresTaskStore, record: TaskRecord) {
    let ending = Ending::new(TaskOutcome::Succeeded, EndReason::Exit);
    let event = TaskEvent::Ended { attempt: record.state.attempt, ending };
    let state = record.state.after(&event, &record.spec, 2).expect("it follows");
    let change = Change { id: record.id, state, output: None };
    let outcome = store.persist(change, Durability::Power).await.expect("it is stored");
    assert_eq!(outcome, ChangeOutcome::Yes);
}

fn queued(number: usize) -> NewTask {
    let spec = TaskSpec {
        runtime: "sh".to_owned(),
        code: "echo hello".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        priority: MessagePriority::ALL[number % 4],
        timeout_ms: 60_000,
        retries: 1,
    };
    let id = TaskId::new(&format!("task-{number}")).expect("a name");
    let record = TaskRecord { id, spec: Arc::new(spec), state: TaskState::submitted("", 1) };
    NewTask { record, key: None, fingerprint: [7; 16] }
}
