use super::view::TaskNotice;
use std::collections::HashMap;
use tidegate::capacity::Ticket;
use tidegate::ledger::SlotLease;
use tidegate::task::{OutputChunk, TaskId};
use tidegate::tasks::TaskRecord;
use tokio::sync::{broadcast, watch};

/// What a task holds in memory besides its code, about.
const ENTRY_BYTES: usize = 1_024;
/// Notices that one who watches may be behind. More, and it has to start again.
const NOTICES_MAX: usize = 256;

/// The tasks that are not over, by ticket and by name. How many there may be is for the manager to say.
#[derive(Default)]
pub(super) struct Book {
    entries: HashMap<Ticket, Entry>,
    tickets: HashMap<TaskId, Ticket>,
    bytes: usize,
    ticket_next: u64,
}

/// A task that is not over.
pub(super) struct Entry {
    pub record: TaskRecord,
    /// Who may stop the attempt that is under way; `None` while it waits.
    pub driven: Option<watch::Sender<bool>>,
    /// Where the attempt is that is under way.
    pub at: Option<Box<str>>,
    /// Somebody wants it to stop, and whoever drives it may not have heard of that.
    pub cancel_asked: bool,
    /// What the attempt that is under way has written.
    pub output: Vec<OutputChunk>,
    pub notices: Option<broadcast::Sender<TaskNotice>>,
    pub lease: Option<SlotLease>,
    pub reservation: Option<String>,
}

// === impl Book ===

impl Book {
    /// Puts a task in. `None`, and nothing changes, when it is there.
    pub fn insert(&mut self, record: TaskRecord) -> Option<Ticket> {
        if self.tickets.contains_key(&record.id) {
            return None;
        }
        let ticket = Ticket(self.ticket_next);
        self.ticket_next += 1;
        self.bytes += bytes_of(&record);
        self.tickets.insert(record.id.clone(), ticket);
        let entry = Entry {
            record,
            driven: None,
            at: None,
            cancel_asked: false,
            output: Vec::new(),
            notices: None,
            lease: None,
            reservation: None,
        };
        self.entries.insert(ticket, entry);
        Some(ticket)
    }

    /// Takes a task out.
    pub fn remove(&mut self, ticket: Ticket) -> Option<Entry> {
        let entry = self.entries.remove(&ticket)?;
        self.tickets.remove(&entry.record.id);
        self.bytes = self.bytes.saturating_sub(bytes_of(&entry.record));
        Some(entry)
    }

    pub fn ticket(&self, id: &TaskId) -> Option<Ticket> {
        self.tickets.get(id).copied()
    }

    pub fn get(&self, ticket: Ticket) -> Option<&Entry> {
        self.entries.get(&ticket)
    }

    pub fn get_mut(&mut self, ticket: Ticket) -> Option<&mut Entry> {
        self.entries.get_mut(&ticket)
    }

    pub fn iter(&self) -> impl Iterator<Item = (Ticket, &Entry)> {
        self.entries.iter().map(|(ticket, entry)| (*ticket, entry))
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// What all of them hold in memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

// === impl Entry ===

impl Entry {
    /// For one more who watches.
    pub fn subscribe(&mut self) -> broadcast::Receiver<TaskNotice> {
        let notices = self.notices.get_or_insert_with(|| broadcast::channel(NOTICES_MAX).0);
        notices.subscribe()
    }

    /// The attempt wrote something. Small pieces become one.
    pub fn wrote(&mut self, chunk: &OutputChunk) {
        match self.output.last_mut() {
            Some(last) if last.stream == chunk.stream => last.text.push_str(&chunk.text),
            _ => self.output.push(chunk.clone()),
        }
    }

    /// Tells those who watch.
    pub fn tell(&self, notice: TaskNotice) {
        if let Some(notices) = &self.notices {
            // Nobody may be watching any more.
            let _ = notices.send(notice);
        }
    }
}

/// What a task holds in memory, about.
pub(super) fn bytes_of(record: &TaskRecord) -> usize {
    record.spec.bytes() + ENTRY_BYTES
}
