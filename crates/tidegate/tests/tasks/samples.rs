use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate::MessagePriority;
use tidegate::task::{
    EndReason, Ending, OutputChunk, OutputStream, TaskEvent, TaskId, TaskOutcome, TaskSpec,
    TaskState, TaskStatus,
};
use tidegate::tasks::{
    Change, ChangeOutcome, Durability, NewTask, Submission, TaskQuery, TaskRecord, TaskStore,
};

pub const OWNER: &str = "manager-1";

pub fn id(name: &str) -> TaskId {
    TaskId::new(name).unwrap()
}

pub fn spec(code: &str) -> TaskSpec {
    TaskSpec {
        runtime: "sh".to_owned(),
        code: code.to_owned(),
        args: vec!["a\0b".to_owned()],
        env: BTreeMap::from([("NAME".to_owned(), "wert ä".to_owned())]),
        priority: MessagePriority::High,
        timeout_ms: 1_000,
        retries: 0,
    }
}

/// A task whose fingerprint is that of its code.
pub fn task(name: &str, code: &str, now_ms: u64) -> NewTask {
    let state = TaskState::submitted(OWNER, now_ms);
    let record = TaskRecord { id: id(name), spec: Arc::new(spec(code)), state };
    let mut fingerprint = [0; 16];
    code.bytes().zip(&mut fingerprint).for_each(|(byte, place)| *place = byte);
    NewTask { record, key: None, fingerprint }
}

pub fn keyed(name: &str, code: &str, key: &str) -> NewTask {
    NewTask { key: Some(key.into()), ..task(name, code, 1) }
}

pub fn dispatching() -> TaskEvent {
    TaskEvent::Dispatching { executor: "executor-1".into() }
}

pub fn accepted(attempt: u32) -> TaskEvent {
    TaskEvent::Accepted { attempt, fence: 7 }
}

pub fn ended(attempt: u32, outcome: TaskOutcome) -> TaskEvent {
    let ending = Ending::new(outcome, EndReason::Exit).because("said \"so\"\0 and ä");
    TaskEvent::Ended { attempt, ending }
}

pub fn after(record: &TaskRecord, event: &TaskEvent, now_ms: u64) -> TaskRecord {
    let state = record.state.after(event, &record.spec, now_ms).unwrap();
    TaskRecord { state, ..record.clone() }
}

pub fn chunks() -> Vec<OutputChunk> {
    let chunk = |stream, text: &str| OutputChunk { stream, text: text.to_owned() };
    vec![
        chunk(OutputStream::Stdout, "one\n\0ä"),
        chunk(OutputStream::Stderr, ""),
        chunk(OutputStream::Stdout, &"x".repeat(3_000)),
    ]
}

pub async fn submit(store: &impl TaskStore, task: NewTask) -> TaskRecord {
    let record = task.record.clone();
    assert_eq!(store.submit(task).await.unwrap(), Submission::New);
    record
}

/// Keeps what an event makes of a task.
pub async fn step(store: &impl TaskStore, record: &mut TaskRecord, event: &TaskEvent, now_ms: u64) {
    *record = after(record, event, now_ms);
    assert_eq!(persist(store, record).await, ChangeOutcome::Yes);
}

pub async fn persist(store: &impl TaskStore, record: &TaskRecord) -> ChangeOutcome {
    let output = record.state.status.is_over().then(chunks);
    let change = Change { id: record.id.clone(), state: record.state.clone(), output };
    store.persist(change, Durability::Power).await.unwrap()
}

/// Brings a task to its end.
pub async fn finish(
    store: &impl TaskStore,
    record: &mut TaskRecord,
    outcome: TaskOutcome,
    at_ms: u64,
) {
    step(store, record, &dispatching(), at_ms).await;
    step(store, record, &accepted(1), at_ms).await;
    step(store, record, &ended(1, outcome), at_ms).await;
}

/// The names of all tasks of a list, page by page.
pub async fn names(
    store: &impl TaskStore,
    status: Option<TaskStatus>,
    limit: usize,
) -> Vec<String> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let query = TaskQuery { status, after, limit, client: None };
        let page = store.list(&query).await.unwrap();
        assert!(page.tasks.len() <= limit);
        names.extend(page.tasks.iter().map(|task| task.id.to_string()));
        after = page.next;
        if after.is_none() {
            return names;
        }
        assert!(!page.tasks.is_empty(), "a page without an end");
    }
}

pub async fn adopt_all(store: &impl TaskStore, owner: &str, limit: usize) -> Vec<TaskRecord> {
    let mut all = Vec::new();
    loop {
        let page = store.adopt(owner, limit, true).await.unwrap();
        assert!(page.len() <= limit);
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}
