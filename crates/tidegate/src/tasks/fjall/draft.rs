use super::engine::{Engine, Progress};
use super::read;
use super::row::{self, Mark, NewRow, SpecHead, StateRow, StepRow};
use crate::storage::StoreError;
use crate::tasks::codec::{damaged, status_code};
use crate::tasks::{ChangeOutcome, Submission, TaskRecord};
use fjall::{OwnedWriteBatch, UserValue};
use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use tidegate_core::task::{TaskEvent, TaskId};

/// Changes of a group of submissions and steps, each decided with those before it applied. A commit may write a
/// key only once, so nothing is written before all are decided.
pub(super) struct Draft<'a> {
    engine: &'a Engine,
    tasks: HashMap<TaskId, Entry>,
    keys: HashMap<Box<str>, TaskId>,
    progress: Progress,
    is_changed: bool,
}

/// A task that the group is about.
struct Entry {
    /// Stored state.
    stored: Option<Mark>,
    /// State after the commit.
    now: Option<Now>,
}

/// Where a task stands when the group is done.
struct Now {
    mark: Mark,
    ended_ms: u64,
    state: UserValue,
    /// Its client, once the group has changed it.
    client: Option<Box<str>>,
    /// New specification, if it changed.
    spec: Option<UserValue>,
    key: Option<Box<str>>,
    output: Option<Vec<u8>>,
}

// === impl Draft ===

impl<'a> Draft<'a> {
    pub(super) fn new(engine: &'a Engine, progress: &Progress) -> Self {
        Self {
            engine,
            tasks: HashMap::new(),
            keys: HashMap::new(),
            progress: progress.clone(),
            is_changed: false,
        }
    }

    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Decides a submission. An error changes nothing.
    pub(super) fn submit(&mut self, new: NewRow) -> Result<Submission, StoreError> {
        if self.now(&new.id)?.is_some() {
            return match self.has_fingerprint(&new.id, &new.fingerprint)? {
                true => self.record(&new.id).map(Submission::Same),
                false => Ok(Submission::OtherUnderId(new.id)),
            };
        }
        if let Some(holder) = self.holder(new.key.as_deref())? {
            return match self.has_fingerprint(&holder, &new.fingerprint)? {
                true => self.record(&holder).map(Submission::Same),
                false => Ok(Submission::OtherUnderKey(holder)),
            };
        }
        self.insert(new);
        Ok(Submission::New)
    }

    /// Decides a step. An error changes nothing.
    pub(super) fn persist(&mut self, step: StepRow) -> Result<ChangeOutcome, StoreError> {
        let Some(now) = self.now(&step.id)? else { return Ok(ChangeOutcome::Conflict(None)) };
        let follows = now.mark.version.checked_add(1) == Some(step.state.version);
        if !follows || now.mark.status.is_over() {
            return row::read_state(&step.id, &now.state)
                .map(|state| ChangeOutcome::Conflict(Some(state)));
        }
        self.change(&step.id, step.state, step.output);
        Ok(ChangeOutcome::Yes)
    }

    /// Makes a task this manager's.
    pub(super) fn adopt(&mut self, id: &TaskId, owner: &str) -> Result<TaskRecord, StoreError> {
        if self.now(id)?.is_none() {
            return Err(damaged(id, "state", &"the index has it, and it is not there"));
        }
        let mut record = self.record(id)?;
        let adopted = TaskEvent::Adopted { owner: owner.into() };
        let state = record.state.after(&adopted, &record.spec, record.state.queued_ms);
        record.state = state.map_err(|stale| {
            damaged(id, "state", &format_args!("it is to be adopted, and {stale}"))
        })?;
        self.change(id, StateRow::new(id, &record.state)?, None);
        Ok(record)
    }

    /// Everything that is to be written, and how far the store is then.
    pub(super) fn into_batch(self) -> (OwnedWriteBatch, Progress) {
        let engine = self.engine;
        let mut batch = OwnedWriteBatch::with_capacity(engine.db.clone(), 4 * self.tasks.len() + 1);
        for (id, entry) in self.tasks {
            let Some(now) = entry.now else { continue };
            if entry.stored != Some(now.mark) {
                now.write(engine, &mut batch, &id, entry.stored);
            }
        }
        let commit = self.progress.commit + 1;
        (batch, Progress { commit, ..self.progress })
    }

    /// The earliest end of the tasks that end with this.
    pub(super) fn earliest_end_ms(&self) -> Option<u64> {
        let changed = self
            .tasks
            .values()
            .filter_map(|entry| entry.now.as_ref().filter(|now| entry.stored != Some(now.mark)));
        changed.filter(|now| now.mark.status.is_over()).map(|now| now.ended_ms).min()
    }

    /// Where a task stands, as far as the group is decided.
    fn now(&mut self, id: &TaskId) -> Result<Option<&Now>, StoreError> {
        let entry = match self.tasks.entry(id.clone()) {
            Place::Occupied(place) => place.into_mut(),
            Place::Vacant(place) => {
                let found = self.engine.states.get(id.as_str());
                let found = found.map_err(|error| self.engine.trouble(&error))?;
                let now = found.map(|state| Now::stored(id, state)).transpose()?;
                place.insert(Entry { stored: now.as_ref().map(|now| now.mark), now })
            }
        };
        Ok(entry.now.as_ref())
    }

    /// The task that has this key.
    fn holder(&mut self, key: Option<&str>) -> Result<Option<TaskId>, StoreError> {
        let Some(key) = key else { return Ok(None) };
        if let Some(id) = self.keys.get(key) {
            return Ok(Some(id.clone()));
        }
        let found = self.engine.keys.get(key).map_err(|error| self.engine.trouble(&error))?;
        let Some(id) = found.map(|name| self.engine.task_id(&name)).transpose()? else {
            return Ok(None);
        };
        match self.now(&id)?.is_some() {
            true => Ok(Some(id)),
            false => Err(damaged(&id, "state", &"a key names it, and it is not there")),
        }
    }

    /// A task's spec as it is kept, of the group or of the database.
    fn spec(&self, id: &TaskId) -> Result<UserValue, StoreError> {
        let new = self.tasks.get(id).and_then(|entry| entry.now.as_ref()?.spec.clone());
        let spec = match new {
            Some(spec) => Some(spec),
            None => {
                self.engine.specs.get(id.as_str()).map_err(|error| self.engine.trouble(&error))?
            }
        };
        spec.ok_or_else(|| damaged(id, "spec", &"there is none"))
    }

    fn has_fingerprint(&self, id: &TaskId, fingerprint: &[u8; 16]) -> Result<bool, StoreError> {
        Ok(SpecHead::read(id, &self.spec(id)?)?.fingerprint == *fingerprint)
    }

    fn record(&mut self, id: &TaskId) -> Result<TaskRecord, StoreError> {
        let spec = self.spec(id)?;
        let state = self.now(id)?.map(|now| now.state.clone()).unwrap_or_default();
        read::decode(id, &state, Some(&spec))
    }

    fn insert(&mut self, new: NewRow) {
        let seq = self.progress.next_seq;
        let (version, status) = (new.state.version, new.state.status);
        self.progress.next_seq += 1;
        self.progress.counts[status as usize] += 1;
        self.is_changed = true;
        if let Some(key) = &new.key {
            self.keys.insert(key.clone(), new.id.clone());
        }
        let now = Now {
            mark: Mark { seq, version, status },
            ended_ms: new.state.ended_ms,
            client: new.state.client.clone(),
            state: new.state.into_bytes(seq).into(),
            spec: Some(new.spec.into()),
            key: new.key,
            output: None,
        };
        self.tasks.insert(new.id, Entry { stored: None, now: Some(now) });
    }

    fn change(&mut self, id: &TaskId, state: StateRow, output: Option<Vec<u8>>) {
        let Some(now) = self.tasks.get_mut(id).and_then(|entry| entry.now.as_mut()) else { return };
        let counts = &mut self.progress.counts;
        counts[now.mark.status as usize] = counts[now.mark.status as usize].saturating_sub(1);
        counts[state.status as usize] += 1;
        now.mark = Mark { seq: now.mark.seq, version: state.version, status: state.status };
        now.ended_ms = state.ended_ms;
        now.client = state.client.clone();
        now.state = state.into_bytes(now.mark.seq).into();
        now.output = output.or(now.output.take());
        self.is_changed = true;
    }
}

// === impl Now ===

impl Now {
    fn stored(id: &TaskId, state: UserValue) -> Result<Self, StoreError> {
        let mark = Mark::read(id, &state)?;
        Ok(Self { mark, ended_ms: 0, state, client: None, spec: None, key: None, output: None })
    }

    fn write(
        self,
        engine: &Engine,
        batch: &mut OwnedWriteBatch,
        id: &TaskId,
        stored: Option<Mark>,
    ) {
        let name = id.as_str();
        let Mark { seq, status, .. } = self.mark;
        batch.insert(&engine.states, name, self.state);
        if let Some(spec) = self.spec {
            batch.insert(&engine.specs, name, spec);
        }
        if let Some(key) = self.key {
            batch.insert(&engine.keys, &*key, name);
        }
        if let Some(output) = self.output {
            batch.insert(&engine.outputs, name, output);
        }
        if stored.is_some_and(|stored| stored.status == status) {
            return;
        }
        let places = |place: &[u8]| {
            let of_client = self.client.as_deref().map(|client| row::of_client(client, place));
            std::iter::once(place.to_vec()).chain(of_client)
        };
        if !status.is_over() {
            let value = [&[status_code(status)], name.as_bytes()].concat();
            return places(&row::live(seq))
                .for_each(|place| batch.insert(&engine.index, place, value.clone()));
        }
        if stored.is_some() {
            places(&row::live(seq)).for_each(|place| batch.remove(&engine.index, place));
        }
        places(&row::done(status, seq)).for_each(|place| batch.insert(&engine.index, place, name));
        batch.insert(&engine.index, row::ended(self.ended_ms, seq), name);
    }
}
