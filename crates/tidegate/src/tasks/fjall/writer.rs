use super::draft::Draft;
use super::engine::{Engine, Progress};
use super::row::{self, Mark, NewRow, SpecHead, StepRow};
use crate::store::StoreError;
use crate::store::fjall::folder::Folder;
use crate::store::fjall::tables::wait_for_readers;
use crate::store::fjall::view::View;
use crate::tasks::bounds::{PAGE_BYTES_MAX, PAGE_MAX};
use crate::tasks::codec::damaged;
use crate::tasks::{Durability, Kept, Submission, TaskRecord};
use fjall::OwnedWriteBatch;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tidegate_core::task::TaskId;
use tokio::sync::{mpsc, oneshot};

/// What waits is committed together, up to so many and so many bytes: one sync for all.
const GROUP_MAX: usize = 1_024;
const GROUP_BYTES_MAX: usize = 4 << 20;

/// Where an answer goes. An asker that has left doesn't need it.
type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What readers see: the database, and how many tasks there are in each status.
pub(super) type TaskView = View<Engine, [u64; 6]>;

/// What the writer is asked for.
pub(super) enum Request {
    Write(Write),
    Adopt { owner: Box<str>, limit: usize, reply: Reply<Vec<TaskRecord>> },
    Forget { ended_before_ms: u64, limit: usize, reply: Reply<u64> },
}

/// What can share a commit.
pub(super) enum Write {
    Submit(Box<NewRow>, Reply<Submission>),
    Keep(Box<StepRow>, Durability, Reply<Kept>),
}

/// What was decided, and is answered once it is durable.
enum Decided {
    Submit(Result<Submission, StoreError>, Reply<Submission>),
    Keep(Result<Kept, StoreError>, Durability, Reply<Kept>),
}

/// The one that changes the store, on a thread of its own.
pub(super) struct Writer {
    folder: Folder,
    view: Arc<TaskView>,
    progress: Progress,
    /// The last commit that a power cut does not take.
    synced: u64,
    /// A database that failed, until its last reader is done.
    closing: Option<Arc<Engine>>,
    /// The number of a commit that failed, and may be in the journal nevertheless.
    in_doubt: Option<u64>,
    /// Tasks from here on were submitted since the folder was opened: they have an owner that lives.
    first_of_ours: u64,
    /// All tasks before this place are over, or adopted since the folder was opened.
    adopted: u64,
    /// No task ended before this that is not forgotten.
    forgotten_ms: u64,
}

// === impl Writer ===

impl Writer {
    /// Opens a folder's database, or makes one.
    pub(super) fn open(folder: Folder) -> Result<Self, StoreError> {
        let mut writer = Self {
            folder,
            view: Arc::default(),
            progress: Progress::default(),
            synced: 0,
            closing: None,
            // A process that was killed leaves what was committed and not synced yet.
            in_doubt: Some(0),
            first_of_ours: 0,
            adopted: 0,
            forgotten_ms: 0,
        };
        writer.reopen()?;
        writer.first_of_ours = writer.progress.next_seq;
        Ok(writer)
    }

    pub(super) fn view(&self) -> Arc<TaskView> {
        self.view.clone()
    }

    /// Does what is asked, until nobody can ask any more.
    pub(super) fn serve(mut self, mut requests: mpsc::Receiver<Request>) {
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
        let ready = self.engine_with_room();
        let engine = match ready {
            Ok(engine) => engine,
            Err(error) => {
                group.into_iter().for_each(|write| write.fail(&error));
                return Err(error);
            }
        };
        let mut draft = Draft::new(&engine, &self.progress);
        decided.extend(group.into_iter().map(|write| match write {
            Write::Submit(new, reply) => Decided::Submit(draft.submit(*new), reply),
            Write::Keep(step, durability, reply) => {
                Decided::Keep(draft.keep(*step), durability, reply)
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
                self.view.write().tallies = progress.counts;
                self.progress = progress;
                Ok(())
            }
            Err(error) => {
                drop(engine);
                self.find_out(progress.commit, error)
            }
        }
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        // A commit that failed, and was found after all, was written to tables: that is as good.
        let commit = self.progress.commit;
        if self.synced >= commit {
            return Ok(());
        }
        let engine = self.engine()?;
        match engine.sync() {
            Ok(()) => {
                self.synced = commit;
                Ok(())
            }
            Err(error) => {
                drop(engine);
                self.find_out(commit, error)
            }
        }
    }

    fn adopt(&mut self, owner: &str, limit: usize) -> Result<Vec<TaskRecord>, StoreError> {
        if self.adopted >= self.first_of_ours {
            return Ok(Vec::new());
        }
        let engine = self.engine_with_room()?;
        let mut draft = Draft::new(&engine, &self.progress);
        let (mut records, mut bytes, mut adopted) = (Vec::new(), 0, self.first_of_ours);
        for guard in engine.index.range(row::live(self.adopted)..row::live(self.first_of_ours)) {
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
        let engine = self.engine_with_room()?;
        let range = row::ended(self.forgotten_ms, 0)..row::ended(ended_before_ms, 0);
        let (mut batch, mut progress) = (engine.db.batch(), self.progress.clone());
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

    /// A panic inside the engine is a failed write: close it, and open it again for the next.
    fn guarded<T>(
        &mut self,
        what: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        catch_unwind(AssertUnwindSafe(|| what(self))).unwrap_or_else(|_| {
            let error = StoreError::Unavailable(format!(
                "{}: the storage engine failed; it is opened again",
                self.folder.path().display(),
            ));
            self.close(&error);
            Err(error)
        })
    }

    /// A failed commit may be complete in the journal: opening it again tells. If it can't be opened now, whoever
    /// asks again will be told by what is there.
    fn find_out(&mut self, commit: u64, error: StoreError) -> Result<(), StoreError> {
        self.close(&error);
        match self.engine() {
            Ok(_) if self.progress.commit >= commit => Ok(()),
            _ => Err(error),
        }
    }

    fn engine_with_room(&mut self) -> Result<Arc<Engine>, StoreError> {
        let engine = self.engine()?;
        engine.wait_for_room().inspect_err(|error| self.close(error))?;
        Ok(engine)
    }

    /// The database, opened again if it failed before.
    fn engine(&mut self) -> Result<Arc<Engine>, StoreError> {
        if self.view.read().engine.is_none() {
            self.reopen()?;
        }
        self.view.read().engine()
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        wait_for_readers(&mut self.closing)?;
        let engine = Engine::open(&self.folder)?;
        let progress = engine.load()?;
        if self.in_doubt.is_some_and(|commit| progress.commit >= commit) {
            engine.write_tables()?;
        }
        self.in_doubt = None;
        self.synced = progress.commit;
        let mut inside = self.view.write();
        inside.engine = Some(Arc::new(engine));
        inside.tallies = progress.counts;
        drop(inside);
        self.progress = progress;
        Ok(())
    }

    /// Nothing more is written to this database: it refuses that itself after a failed write.
    fn close(&mut self, error: &StoreError) {
        let mut inside = self.view.write();
        inside.closed_by = error.to_string();
        if let Some(engine) = inside.engine.take() {
            tracing::warn!(%error, "the task store failed; it is opened again for the next change");
            self.closing = Some(engine);
            self.in_doubt = Some(self.synced + 1);
        }
    }
}

// === impl Write ===

impl Write {
    fn bytes(&self) -> usize {
        match self {
            Self::Submit(new, _) => new.spec.len() + new.state.len(),
            Self::Keep(step, ..) => step.state.len() + step.output.as_ref().map_or(0, Vec::len),
        }
    }

    fn fail(self, error: &StoreError) {
        match self {
            Self::Submit(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::Keep(_, _, reply) => drop(reply.send(Err(error.clone()))),
        }
    }
}

// === impl Decided ===

impl Decided {
    /// Whether the answer is true only after a sync. A repeated submission may be of the same group as the first.
    fn waits(&self) -> bool {
        match self {
            Self::Submit(..) => true,
            Self::Keep(_, durability, _) => *durability == Durability::Power,
        }
    }

    fn answer(self) {
        match self {
            Self::Submit(result, reply) => drop(reply.send(result)),
            Self::Keep(result, _, reply) => drop(reply.send(result)),
        }
    }

    fn fail(self, error: &StoreError) {
        match self {
            Self::Submit(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::Keep(_, _, reply) => drop(reply.send(Err(error.clone()))),
        }
    }
}

/// What waits already, and what else was found behind it.
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
