use super::engine::Engine;
use super::{read, row};
use crate::storage::StoreError;
use crate::tasks::bounds::{PAGE_BYTES_MAX, PAGE_MAX};
use crate::tasks::codec::status_code;
use crate::tasks::{TaskPage, TaskQuery};
use fjall::{Guard, Iter, Readable as _, Snapshot};
use std::iter::Rev;
use tidegate_core::task::{TaskId, TaskStatus};

/// Tasks of one part of the index, the newest first.
struct Part<'a> {
    engine: &'a Engine,
    rows: Rev<Iter>,
    /// Only those that are in this status, where the index has several together.
    only: Option<u8>,
    /// Of those that are not over the status stands before the name.
    is_live: bool,
    /// Next task.
    next: Option<(u64, TaskId)>,
}

/// A page of tasks, the newest first.
pub(super) fn list(engine: &Engine, query: &TaskQuery) -> Result<TaskPage, StoreError> {
    let snapshot = engine.db.snapshot();
    let before = query.position()?.unwrap_or(u64::MAX);
    let limit = query.limit.min(PAGE_MAX);
    if before == 0 {
        return Ok(TaskPage::default());
    }
    let mut parts = parts(engine, &snapshot, query, before)?;
    let (mut page, mut bytes, mut last) = (TaskPage::default(), 0, None);
    loop {
        let newest = parts.iter_mut().max_by_key(|part| part.next.as_ref().map(|next| next.0));
        let Some(part) = newest else { return Ok(page) };
        let Some((seq, id)) = part.next.take() else { return Ok(page) };
        if page.tasks.len() >= limit || bytes >= PAGE_BYTES_MAX {
            page.next = last.map(|seq: u64| seq.to_string());
            return Ok(page);
        }
        part.advance()?;
        // One snapshot has both or neither.
        let record = read::record(engine, &snapshot, &id)?.ok_or_else(|| {
            crate::tasks::codec::damaged(&id, "state", &"the index has it, and it is not there")
        })?;
        bytes += record.spec.bytes();
        page.tasks.push(record);
        last = Some(seq);
    }
}

fn parts<'a>(
    engine: &'a Engine,
    snapshot: &Snapshot,
    query: &TaskQuery,
    before: u64,
) -> Result<Vec<Part<'a>>, StoreError> {
    let status = query.status;
    let place = |place: &[u8]| match &query.client {
        Some(client) => row::of_client(client, place),
        None => place.to_vec(),
    };
    let over = TaskStatus::ALL.into_iter().filter(|status| status.is_over());
    let over: Vec<_> = over.filter(|over| status.is_none_or(|status| status == *over)).collect();
    let mut parts = Vec::with_capacity(4);
    if status.is_none_or(|status| !status.is_over()) {
        let rows = snapshot.range(&engine.index, place(&row::live(0))..place(&row::live(before)));
        let only = status.map(status_code);
        parts.push(Part { engine, rows: rows.rev(), only, is_live: true, next: None });
    }
    for status in over {
        let range = place(&row::done(status, 0))..place(&row::done(status, before));
        let rows = snapshot.range(&engine.index, range).rev();
        parts.push(Part { engine, rows, only: None, is_live: false, next: None });
    }
    parts.iter_mut().try_for_each(Part::advance)?;
    Ok(parts)
}

// === impl Part ===

impl Part<'_> {
    fn advance(&mut self) -> Result<(), StoreError> {
        while let Some(guard) = self.rows.next() {
            if let Some(next) = self.read(guard)? {
                self.next = Some(next);
                return Ok(());
            }
        }
        Ok(())
    }

    /// A row's place and task, unless it is in another status.
    fn read(&self, guard: Guard) -> Result<Option<(u64, TaskId)>, StoreError> {
        let (key, value) = guard.into_inner().map_err(|error| self.engine.trouble(&error))?;
        let (status, name) = match self.is_live {
            true => value
                .split_first()
                .map_or((None, &value[..]), |(status, name)| (Some(*status), name)),
            false => (None, &value[..]),
        };
        if self.only.is_some() && self.only != status {
            return Ok(None);
        }
        let id = self.engine.task_id(name)?;
        Ok(row::read_seq(&key).map(|seq| (seq, id)))
    }
}
