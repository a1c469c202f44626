//! A durable task store and a slot ledger: what a task manager persists before it executes anything.
//!
//! `cargo run -p tidegate --example task_store`

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tidegate::MessagePriority::Normal;
use tidegate::ledger::{Acquired, Ledger, MemoryLedger, SlotRequest};
use tidegate::task::{TaskId, TaskSpec, TaskState};
use tidegate::tasks::{FjallTaskStore, NewTask, Submission, TaskQuery, TaskRecord, TaskStore};

const MANAGER: &str = "manager-1";
const EXECUTOR: &str = "http://127.0.0.1:8083";

fn new_task(name: &str) -> Result<NewTask, Box<dyn Error>> {
    let spec = TaskSpec {
        runtime: "sh".to_owned(),
        code: "echo done".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
        priority: Normal,
        timeout_ms: 1_000,
        retries: 0,
    };
    let state = TaskState::submitted(MANAGER, 1_700_000_000_000);
    let record = TaskRecord { id: TaskId::new(name)?, spec: Arc::new(spec), state };
    // A real manager hashes the submission, so that another one under the same name is told apart.
    Ok(NewTask { record, key: Some(format!("client/{name}").into()), fingerprint: [7; 16] })
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("tidegate-tasks-{}", std::process::id()));
    let tasks = FjallTaskStore::open(&folder).await?;
    for name in ["nightly", "weekly"] {
        // Durable when this returns.
        assert_eq!(tasks.submit(new_task(name)?).await?, Submission::New);
    }
    // A client that lost the answer submits again, and finds its first submission.
    let again = tasks.submit(new_task("nightly")?).await?;
    println!("submitted again: {}", matches!(again, Submission::Same(_)));

    // One executor with one slot: the first task holds it, the second one is queued for it.
    let ledger = MemoryLedger::new();
    ledger.declare(EXECUTOR, 1).await?;
    let query = TaskQuery { limit: 10, ..TaskQuery::default() };
    for task in tasks.list(&query).await?.tasks.iter().rev() {
        let request = SlotRequest {
            holder: task.id.attempt(1),
            priority: task.spec.priority,
            executors: vec![EXECUTOR.into()],
            ttl: Duration::from_secs(30),
        };
        match ledger.acquire(&request).await? {
            Acquired::Granted(lease) => println!("{} has a slot, fence {}", task.id, lease.fence),
            Acquired::Waiting { .. } => println!("{} is queued for a slot", task.id),
        }
    }
    println!("tasks by status: {:?}", tasks.counts().await?);
    drop(tasks);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
