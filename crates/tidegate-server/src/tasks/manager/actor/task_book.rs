use crate::tasks::manager::view::{TaskNotice, TaskProgress};
use std::collections::HashMap;
use tidegate::capacity::Ticket;
use tidegate::progress::Progress;
use tidegate::task::{OutputChunk, TaskId, TaskState};
use tidegate::tasks::TaskRecord;
use tokio::sync::{broadcast, watch};

/// Approximate memory of a task besides its code, in bytes.
const ENTRY_BYTES: usize = 1_024;
/// Notices that a watcher may be behind before it must subscribe again.
const NOTICES_MAX: usize = 256;

/// Tasks that are not over, by ticket and by id, and submissions on their way to the store.
#[derive(Default)]
pub(super) struct TaskBook {
    entries: HashMap<Ticket, TaskEntry>,
    tickets: HashMap<TaskId, Ticket>,
    bytes: usize,
    ticket_next: u64,
    submitting: usize,
    submitting_bytes: usize,
}

/// A task that is not over.
pub(super) struct TaskEntry {
    record: TaskRecord,
    owner: StateOwner,
    /// A client has requested the cancellation, and the attempt may not have seen it.
    cancel_requested: bool,
    output: Vec<OutputChunk>,
    notices: Option<broadcast::Sender<TaskNotice>>,
    reservation: Option<String>,
    /// Progress of the running attempt.
    progress: TaskProgress,
}

/// Owner of a task's next state.
enum StateOwner {
    /// The task waits: the manager's thread may change its state.
    Waiting,
    /// Its cancellation is being persisted: no other step may start.
    Cancelling,
    /// An attempt owns its state.
    Attempt { executor: Box<str>, cancel: watch::Sender<bool> },
}

// === impl TaskBook ===

impl TaskBook {
    /// Adds a task. `None`, without a change, when it is known.
    pub(super) fn insert(&mut self, record: TaskRecord) -> Option<Ticket> {
        if self.tickets.contains_key(&record.id) {
            return None;
        }
        let ticket = Ticket(self.ticket_next);
        self.ticket_next += 1;
        self.bytes += bytes_of(&record);
        self.tickets.insert(record.id.clone(), ticket);
        self.entries.insert(ticket, TaskEntry::new(record));
        Some(ticket)
    }

    /// Removes a task.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<TaskRecord> {
        let entry = self.entries.remove(&ticket)?;
        self.tickets.remove(&entry.record.id);
        self.bytes = self.bytes.saturating_sub(bytes_of(&entry.record));
        Some(entry.record)
    }

    pub(super) fn ticket(&self, id: &TaskId) -> Option<Ticket> {
        self.tickets.get(id).copied()
    }

    pub(super) fn get(&self, ticket: Ticket) -> Option<&TaskEntry> {
        self.entries.get(&ticket)
    }

    pub(super) fn get_mut(&mut self, ticket: Ticket) -> Option<&mut TaskEntry> {
        self.entries.get_mut(&ticket)
    }

    /// The record of a task.
    pub(super) fn record(&self, ticket: Ticket) -> Option<&TaskRecord> {
        self.entries.get(&ticket).map(|entry| &entry.record)
    }

    /// The task with that id.
    pub(super) fn find(&self, id: &TaskId) -> Option<&TaskEntry> {
        self.get(self.ticket(id)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &TaskEntry> {
        self.entries.values()
    }

    /// Tasks with an attempt at an executor of which `at` holds.
    pub(super) fn tickets_at(&self, at: impl Fn(&str) -> bool) -> impl Iterator<Item = Ticket> {
        let has = move |entry: &TaskEntry| entry.executor().is_some_and(&at);
        self.entries.iter().filter(move |(_, entry)| has(entry)).map(|(ticket, _)| *ticket)
    }

    /// Tasks in the book, without submissions on their way to the store.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Approximate memory of the tasks in the book, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Accounts for a submission on its way to the store, and returns its bytes.
    pub(super) fn begin_submission(&mut self, record: &TaskRecord) -> usize {
        let bytes = bytes_of(record);
        self.submitting += 1;
        self.submitting_bytes += bytes;
        bytes
    }

    /// Ends the accounting of a submission that the store has answered.
    pub(super) fn end_submission(&mut self, bytes: usize) {
        self.submitting -= 1;
        self.submitting_bytes -= bytes;
    }

    pub(super) fn has_submissions(&self) -> bool {
        self.submitting > 0
    }

    /// Tasks and submissions.
    pub(super) fn total(&self) -> usize {
        self.entries.len() + self.submitting
    }

    /// Approximate memory of tasks and submissions, in bytes.
    pub(super) fn total_bytes(&self) -> usize {
        self.bytes + self.submitting_bytes
    }
}

// === impl TaskEntry ===

impl TaskEntry {
    fn new(record: TaskRecord) -> Self {
        Self {
            record,
            owner: StateOwner::Waiting,
            cancel_requested: false,
            output: Vec::new(),
            notices: None,
            reservation: None,
            progress: TaskProgress::default(),
        }
    }

    pub(super) fn record(&self) -> &TaskRecord {
        &self.record
    }

    /// Executor of the running attempt.
    pub(super) fn executor(&self) -> Option<&str> {
        match &self.owner {
            StateOwner::Attempt { executor, .. } => Some(executor),
            StateOwner::Waiting | StateOwner::Cancelling => None,
        }
    }

    /// Begins an attempt on an executor, with the channel for its cancellation and the reservation to use.
    pub(super) fn begin_attempt(
        &mut self,
        executor: Box<str>,
    ) -> (watch::Receiver<bool>, Option<String>) {
        let (cancel, cancelled) = watch::channel(self.record.state.cancel_requested);
        self.owner = StateOwner::Attempt { executor, cancel };
        self.output.clear();
        self.progress = TaskProgress::default();
        (cancelled, self.reservation.take())
    }

    /// Ends an attempt or a cancellation with a state, and returns the state before.
    pub(super) fn end_attempt(&mut self, state: TaskState) -> TaskState {
        self.owner = StateOwner::Waiting;
        std::mem::replace(&mut self.record.state, state)
    }

    /// Blocks every other step while a cancellation is being persisted.
    pub(super) fn begin_cancelling(&mut self) {
        self.owner = StateOwner::Cancelling;
    }

    /// Requests a cancellation from the owner of the state. False when the task waits.
    pub(super) fn request_cancel(&mut self) -> bool {
        match &self.owner {
            StateOwner::Waiting => return false,
            StateOwner::Cancelling => {}
            StateOwner::Attempt { cancel, .. } => drop(cancel.send_replace(true)),
        }
        self.cancel_requested = true;
        self.record.state.cancel_requested = true;
        true
    }

    /// True when a cancellation was requested of a task that now waits and that no executor has.
    pub(super) fn must_cancel(&self) -> bool {
        let state = &self.record.state;
        matches!(self.owner, StateOwner::Waiting)
            && (self.cancel_requested || state.cancel_requested)
            && state.assignment.is_none()
            && !state.status.is_over()
    }

    /// Takes in a state that the attempt reports.
    pub(super) fn set_state(&mut self, state: TaskState) {
        let cancel_requested = state.cancel_requested || self.cancel_requested;
        self.record.state = TaskState { cancel_requested, ..state };
    }

    pub(super) fn set_reservation(&mut self, reservation: Option<String>) {
        self.reservation = reservation;
    }

    /// Output of the running attempt.
    pub(super) fn output(&self) -> &[OutputChunk] {
        &self.output
    }

    /// Appends output of the running attempt, and notifies the watchers. Chunks of a stream are joined.
    pub(super) fn append_output(&mut self, attempt: u32, chunk: OutputChunk) {
        match self.output.last_mut() {
            Some(last) if last.stream == chunk.stream => last.text.push_str(&chunk.text),
            _ => self.output.push(chunk.clone()),
        }
        self.notify(TaskNotice::Output { attempt, chunk });
    }

    /// Adds progress of the running attempt, and notifies the watchers.
    pub(super) fn add_progress(&mut self, newer: &Progress, now_ms: u64) {
        self.progress.add(newer, now_ms);
        if self.has_watchers() {
            let (attempt, view) = (self.record.state.attempt, self.progress.view());
            self.notify(TaskNotice::Progress { attempt, progress: Box::new(view) });
        }
    }

    /// Progress of the running attempt.
    pub(super) fn progress(&self) -> &TaskProgress {
        &self.progress
    }

    /// Subscribes one more watcher.
    pub(super) fn subscribe(&mut self) -> broadcast::Receiver<TaskNotice> {
        let notices = self.notices.get_or_insert_with(|| broadcast::channel(NOTICES_MAX).0);
        notices.subscribe()
    }

    pub(super) fn has_watchers(&self) -> bool {
        self.notices.is_some()
    }

    /// Notifies the watchers.
    pub(super) fn notify(&self, notice: TaskNotice) {
        if let Some(notices) = &self.notices {
            // Fails when all watchers have left.
            let _ = notices.send(notice);
        }
    }
}

fn bytes_of(record: &TaskRecord) -> usize {
    record.spec.bytes() + ENTRY_BYTES
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use tidegate::MessagePriority;
    use tidegate::task::{OutputStream, TaskSpec};

    pub(crate) fn record(id: &str) -> TaskRecord {
        let spec = TaskSpec {
            runtime: "sh".to_owned(),
            code: "true".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            priority: MessagePriority::Normal,
            timeout_ms: 1_000,
            retries: 0,
        };
        let state = TaskState::submitted("manager", 1);
        TaskRecord { id: TaskId::new(id).unwrap(), spec: Arc::new(spec), state }
    }

    #[test]
    fn a_task_is_in_the_book_once_and_its_memory_is_freed_with_it() {
        let mut book = TaskBook::default();
        let ticket = book.insert(record("a")).unwrap();
        assert_eq!(book.insert(record("a")), None);
        assert_eq!((book.len(), book.find(&record("a").id).is_some()), (1, true));
        assert!(book.bytes() > ENTRY_BYTES);
        assert_eq!(book.remove(ticket).unwrap().id, record("a").id);
        assert_eq!((book.len(), book.bytes(), book.ticket(&record("a").id)), (0, 0, None));
    }

    #[test]
    fn submissions_count_until_the_store_has_answered() {
        let mut book = TaskBook::default();
        let bytes = book.begin_submission(&record("a"));
        assert_eq!((book.total(), book.total_bytes(), book.len()), (1, bytes, 0));
        assert!(book.has_submissions());
        book.end_submission(bytes);
        assert_eq!((book.total(), book.total_bytes()), (0, 0));
    }

    #[test]
    fn a_cancellation_reaches_the_attempt_or_is_left_to_the_manager() {
        let mut entry = TaskEntry::new(record("a"));
        assert!(!entry.request_cancel(), "nothing runs: the manager cancels it itself");
        let (cancelled, _) = entry.begin_attempt("e".into());
        assert_eq!((entry.executor(), *cancelled.borrow()), (Some("e"), false));
        assert!(entry.request_cancel());
        assert!(*cancelled.borrow());
        assert!(!entry.must_cancel(), "the attempt does");
        entry.end_attempt(record("a").state);
        assert!(entry.must_cancel(), "the attempt was not accepted");
        entry.begin_cancelling();
        assert!(!entry.must_cancel());
    }

    #[test]
    fn a_new_attempt_starts_with_no_output_and_watchers_see_each_chunk() {
        let mut entry = TaskEntry::new(record("a"));
        let mut notices = entry.subscribe();
        let chunk = OutputChunk { stream: OutputStream::Stdout, text: "a".to_owned() };
        entry.append_output(1, chunk.clone());
        entry.append_output(1, chunk.clone());
        assert_eq!(entry.output().len(), 1, "joined");
        assert_eq!(notices.try_recv(), Ok(TaskNotice::Output { attempt: 1, chunk }));
        entry.begin_attempt("e".into());
        assert!(entry.output().is_empty());
    }
}
