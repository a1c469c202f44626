use super::draft::Draft;
use super::engine::{Engine, Progress};
use super::row::{self, Mark, NewRow, SpecHead, StepRow};
use crate::storage::StoreError;
use crate::storage::fjall::{Database, Folder, Kind, Reply, Writer};
use crate::tasks::bounds::{PAGE_BYTES_MAX, PAGE_MAX};
use crate::tasks::codec::damaged;
use crate::tasks::{ChangeOutcome, Durability, Submission, TaskRecord};
use fjall::OwnedWriteBatch;
use std::sync::Arc;
use tidegate_core::task::TaskId;
use tokio::sync::mpsc;

/// Limits of a group that is committed together, with one sync: requests and bytes.
const GROUP_MAX: usize = 1_024;
const GROUP_BYTES_MAX: usize = 4 << 20;

/// A request to the writer.
pub(super) enum Request {
    Write(Write),
    Adopt { owner: Box<str>, limit: usize, reply: Reply<Vec<TaskRecord>> },
    Forget { ended_before_ms: u64, limit: usize, reply: Reply<u64> },
}

/// A request that can share a commit.
pub(super) enum Write {
    Submit(Box<NewRow>, Reply<Submission>),
    Persist(Box<StepRow>, Durability, Reply<ChangeOutcome>),
}

/// A decided request, answered once it is durable.
enum Decided {
    Submit(Result<Submission, StoreError>, Reply<Submission>),
    Persist(Result<ChangeOutcome, StoreError>, Durability, Reply<ChangeOutcome>),
}

/// The writer of a task store.
pub(super) struct TaskWriter {
    database: Database<Engine>,
    /// Tasks from this sequence number on were submitted since the folder was opened: their owner is alive.
    first_of_opening: u64,
    /// All tasks before this sequence number have ended, or were adopted since the folder was opened.
    adopted: u64,
    /// No task that ended before this time is left.
    forgotten_ms: u64,
}

// === impl TaskWriter ===

impl Writer for TaskWriter {
    type Engine = Engine;
    type Request = Request;

    const KIND: Kind = Kind { title: "tidegate tasks", version: 1 };
    const THREAD: &'static str = "tidegate-tasks";
    const REQUESTS_MAX: usize = 1_024;

    fn open(folder: Folder) -> Result<Self, StoreError> {
        // A process that was killed leaves commits that were not synced: all are in doubt.
        let database: Database<Engine> = Database::open(folder, Some(0))?;
        let first_of_opening = database.progress.next_seq;
        Ok(Self { database, first_of_opening, adopted: 0, forgotten_ms: 0 })
    }

    fn database(&mut self) -> &mut Database<Engine> {
        &mut self.database
    }

    fn serve(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut waiting = None;
        while let Some(request) = waiting.take().or_else(|| requests.blocking_recv()) {
            match request {
                Request::Write(first) => {
                    let (group, next) = collect(first, &mut requests);
                    waiting = next;
                    self.write_group(group);
                }
                Request::Adopt { owner, limit, reply } => {
                    let _ = reply.send(self.guarded(|writer| writer.adopt(&owner, limit)));
                }
                Request::Forget { ended_before_ms, limit, reply } => {
                    let forget = |writer: &mut Self| writer.forget(ended_before_ms, limit);
                    let _ = reply.send(self.guarded(forget));
                }
            }
        }
    }
}

impl TaskWriter {
    fn write_group(&mut self, group: Vec<Write>) {
        let mut decided = Vec::with_capacity(group.len());
        let written = self.guarded(|writer| writer.decide(group, &mut decided));
        if let Err(error) = written {
            return decided.into_iter().for_each(|one| one.fail(&error));
        }
        let (later, now): (Vec<_>, Vec<_>) = decided.into_iter().partition(Decided::waits);
        now.into_iter().for_each(Decided::answer);
        if later.is_empty() {
            return;
        }
        match self.guarded(Self::sync) {
            Ok(()) => later.into_iter().for_each(Decided::answer),
            Err(error) => later.into_iter().for_each(|one| one.fail(&error)),
        }
    }

    /// Decides and commits a group. Whatever happens, everyone in it can be answered.
    fn decide(&mut self, group: Vec<Write>, decided: &mut Vec<Decided>) -> Result<(), StoreError> {
        let ready = self.database.engine_with_room();
        let engine = match ready {
            Ok(engine) => engine,
            Err(error) => {
                group.into_iter().for_each(|write| write.fail(&error));
                return Err(error);
            }
        };
        let mut draft = Draft::new(&engine, &self.database.progress);
        decided.extend(group.into_iter().map(|write| match write {
            Write::Submit(new, reply) => Decided::Submit(draft.submit(*new), reply),
            Write::Persist(step, durability, reply) => {
                Decided::Persist(draft.persist(*step), durability, reply)
            }
        }));
        if !draft.is_changed() {
            return Ok(());
        }
        self.forgotten_ms = draft.earliest_end_ms().unwrap_or(u64::MAX).min(self.forgotten_ms);
        let (batch, progress) = draft.into_batch();
        self.commit(engine, batch, progress)
    }

    fn commit(
        &mut self,
        engine: Arc<Engine>,
        batch: OwnedWriteBatch,
        progress: Progress,
    ) -> Result<(), StoreError> {
        match engine.commit(batch, &progress) {
            Ok(()) => {
                self.database.view.write().summary = progress.counts;
                self.database.progress = progress;
                Ok(())
            }
            Err(error) => {
                drop(engine);
                self.database.find_out(progress.commit, error)
            }
        }
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        // A commit that failed, and was found after all, was written to tables: that is as good.
        let commit = self.database.progress.commit;
        if self.database.synced >= commit {
            return Ok(());
        }
        let engine = self.database.engine()?;
        match engine.sync() {
            Ok(()) => {
                self.database.synced = commit;
                Ok(())
            }
            Err(error) => {
                drop(engine);
                self.database.find_out(commit, error)
            }
        }
    }

    fn adopt(&mut self, owner: &str, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        if self.adopted >= self.first_of_opening {
            return Ok(Vec::new());
        }
        let engine = self.database.engine_with_room()?;
        let mut draft = Draft::new(&engine, &self.database.progress);
        let (mut records, mut bytes, mut adopted) = (Vec::new(), 0, self.first_of_opening);
        for guard in engine.index.range(row::live(self.adopted)..row::live(self.first_of_opening)) {
            let (key, value) = guard.into_inner().map_err(|error| engine.trouble(&error))?;
            if records.len() >= limit.clamp(1, PAGE_MAX) || bytes >= PAGE_BYTES_MAX {
                adopted = row::read_seq(&key).unwrap_or(self.adopted);
                break;
            }
            let id = engine.task_id(value.get(1..).unwrap_or_default())?;
            let record: TaskRecord = draft.adopt(&id, owner)?;
            bytes += record.spec.bytes();
            records.push(record);
        }
        if draft.is_changed() {
            let (batch, progress) = draft.into_batch();
            self.commit(engine, batch, progress)?;
            self.sync()?;
        }
        self.adopted = adopted;
        Ok(records)
    }

    fn forget(&mut self, ended_before_ms: u64, limit: usize) -> Result<u64, StoreError> {
        let engine = self.database.engine_with_room()?;
        let range = row::ended(self.forgotten_ms, 0)..row::ended(ended_before_ms, 0);
        let (mut batch, mut progress) = (engine.db.batch(), self.database.progress.clone());
        let (mut gone, mut forgotten_ms) = (0, self.forgotten_ms.max(ended_before_ms));
        if range.is_empty() {
            return Ok(0);
        }
        for guard in engine.index.range(range) {
            let (key, value) = guard.into_inner().map_err(|error| engine.trouble(&error))?;
            if gone >= limit.clamp(1, PAGE_MAX) {
                forgotten_ms = row::read_ended(&key).map_or(self.forgotten_ms, |(ms, _)| ms);
                break;
            }
            let status = remove(&engine, &mut batch, &engine.task_id(&value)?)?;
            batch.remove(&engine.index, key);
            progress.counts[status] = progress.counts[status].saturating_sub(1);
            gone += 1;
        }
        if gone > 0 {
            progress.commit += 1;
            self.commit(engine, batch, progress)?;
        }
        self.forgotten_ms = forgotten_ms;
        Ok(gone as u64)
    }
}

// === impl Write ===

impl Write {
    fn bytes(&self) -> usize {
        match self {
            Self::Submit(new, _) => new.spec.len() + new.state.len(),
            Self::Persist(step, ..) => step.state.len() + step.output.as_ref().map_or(0, Vec::len),
        }
    }

    fn fail(self, error: &StoreError) {
        match self {
            Self::Submit(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::Persist(_, _, reply) => drop(reply.send(Err(error.clone()))),
        }
    }
}

// === impl Decided ===

impl Decided {
    /// True if the answer holds only after a sync. A repeated submission may be in the same group as the first.
    fn waits(&self) -> bool {
        match self {
            Self::Submit(..) => true,
            Self::Persist(_, durability, _) => *durability == Durability::Power,
        }
    }

    fn answer(self) {
        match self {
            Self::Submit(result, reply) => drop(reply.send(result)),
            Self::Persist(result, _, reply) => drop(reply.send(result)),
        }
    }

    fn fail(self, error: &StoreError) {
        match self {
            Self::Submit(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::Persist(_, _, reply) => drop(reply.send(Err(error.clone()))),
        }
    }
}

/// The queued writes, and the request behind them.
fn collect(first: Write, requests: &mut mpsc::Receiver<Request>) -> (Vec<Write>, Option<Request>) {
    let mut bytes = first.bytes();
    let mut group = vec![first];
    while group.len() < GROUP_MAX && bytes < GROUP_BYTES_MAX {
        match requests.try_recv() {
            Ok(Request::Write(write)) => {
                bytes += write.bytes();
                group.push(write);
            }
            Ok(other) => return (group, Some(other)),
            Err(_) => break,
        }
    }
    (group, None)
}

/// Removes everything of a task but its place by time; the status that it was in.
fn remove(engine: &Engine, batch: &mut OwnedWriteBatch, id: &TaskId) -> Result<usize, StoreError> {
    let failed = |error| engine.trouble(&error);
    let name = id.as_str();
    let state = engine.states.get(name).map_err(failed)?;
    let state = state.ok_or_else(|| damaged(id, "state", &"there is none"))?;
    let mark = Mark::read(id, &state)?;
    if let Some(client) = row::read_state(id, &state)?.client {
        let place = row::of_client(&client, &row::done(mark.status, mark.seq));
        batch.remove(&engine.index, place);
    }
    let spec = engine.specs.get(name).map_err(failed)?;
    let spec = spec.ok_or_else(|| damaged(id, "spec", &"there is none"))?;
    if let Some(key) = SpecHead::read(id, &spec)?.key {
        batch.remove(&engine.keys, key);
    }
    for keyspace in [&engine.states, &engine.specs, &engine.outputs] {
        batch.remove(keyspace, name);
    }
    batch.remove(&engine.index, row::done(mark.status, mark.seq));
    Ok(mark.status as usize)
}
