use super::engine::Engine;
use super::row::{self, SpecHead};
use crate::storage::StoreError;
use crate::tasks::TaskRecord;
use crate::tasks::codec::{self, damaged};
use fjall::{Readable, Snapshot};
use std::sync::Arc;
use tidegate_core::task::{OutputChunk, TaskId};

/// A task, as of one moment.
pub(super) fn record(
    engine: &Engine,
    snapshot: &Snapshot,
    id: &TaskId,
) -> Result<Option<TaskRecord>, StoreError> {
    let failed = |error| engine.trouble(&error);
    let Some(state) = snapshot.get(&engine.states, id.as_str()).map_err(failed)? else {
        return Ok(None);
    };
    let spec = snapshot.get(&engine.specs, id.as_str()).map_err(failed)?;
    decode(id, &state, spec.as_deref()).map(Some)
}

/// A task from its two rows.
pub(super) fn decode(
    id: &TaskId,
    state: &[u8],
    spec: Option<&[u8]>,
) -> Result<TaskRecord, StoreError> {
    let spec = spec.ok_or_else(|| damaged(id, "spec", &"there is none"))?;
    let spec = Arc::new(SpecHead::read(id, spec)?.spec(id)?);
    Ok(TaskRecord { id: id.clone(), spec, state: row::read_state(id, state)? })
}

pub(super) fn get(engine: &Engine, id: &TaskId) -> Result<Option<TaskRecord>, StoreError> {
    record(engine, &engine.db.snapshot(), id)
}

pub(super) fn output(engine: &Engine, id: &TaskId) -> Result<Option<Vec<OutputChunk>>, StoreError> {
    let output = engine.outputs.get(id.as_str()).map_err(|error| engine.trouble(&error))?;
    output.map(|bytes| codec::read_output(id, &bytes)).transpose()
}
