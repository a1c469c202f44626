use super::{Change, NewTask};
use crate::storage::StoreError;
use tidegate_core::task::{TaskId, TaskState};

/// The longest key of a client. It still fits, escaped, into a third of a page, the most that an index of
/// PostgreSQL takes.
pub(super) const KEY_BYTES_MAX: usize = 512;

/// The longest name of a manager.
pub(super) const OWNER_BYTES_MAX: usize = 256;

/// The longest name of a client.
pub(super) const CLIENT_BYTES_MAX: usize = 256;

/// Size of a stored specification: well over what [`TaskLimits`](tidegate_core::task::TaskLimits) lets in,
/// when all of it has to be escaped.
pub(super) const SPEC_BYTES_MAX: usize = 16 << 20;

/// Size of a stored state: names, numbers and the message of an ending.
pub(super) const STATE_BYTES_MAX: usize = 256 << 10;

/// Size of a stored output.
pub(super) const OUTPUT_BYTES_MAX: usize = 32 << 20;

/// The most tasks of one page, of one adoption, of one forgetting.
pub(super) const PAGE_MAX: usize = 1_000;

/// The specs of one page or one adoption take about so much: after that it ends early.
pub(super) const PAGE_BYTES_MAX: usize = 32 << 20;

/// Checks that a task can be stored.
pub(super) fn check_new(task: &NewTask) -> Result<(), StoreError> {
    let id = &task.record.id;
    check_state_owner(&task.record.state.owner)?;
    let client = task.record.state.client.as_deref().unwrap_or_default();
    // A NUL ends the name in the index of a folder, and is nothing that PostgreSQL stores.
    if client.len() > CLIENT_BYTES_MAX || client.contains('\0') {
        let what = format!(
            "the name of its client must have at most {CLIENT_BYTES_MAX} bytes, and no NUL"
        );
        return Err(refused(id, &what));
    }
    match &task.key {
        Some(key) if key.is_empty() || key.len() > KEY_BYTES_MAX => Err(refused(
            id,
            &format!("its key has {} bytes, and 1 … {KEY_BYTES_MAX} are taken", key.len()),
        )),
        _ => Ok(()),
    }
}

/// Checks that a step can be stored.
pub(super) fn check_change(change: &Change) -> Result<(), StoreError> {
    check_state_owner(&change.state.owner)?;
    let texts = change.output.iter().flatten().map(|chunk| chunk.text.len());
    check_bytes(&change.id, "output", texts.sum(), OUTPUT_BYTES_MAX)
}

/// Checks the owner of a task, which may be nobody.
fn check_state_owner(owner: &str) -> Result<(), StoreError> {
    if owner.is_empty() { Ok(()) } else { check_owner(owner) }
}

/// Refuses a task that belongs to nobody: its store has one manager, which would never see it again.
pub(super) fn check_owned(id: &TaskId, state: &TaskState) -> Result<(), StoreError> {
    match state.owner.is_empty() {
        false => Ok(()),
        true => Err(refused(id, "it has no owner, and a folder's manager claims nothing")),
    }
}

pub(super) fn check_owner(owner: &str) -> Result<(), StoreError> {
    match owner.len() {
        1..=OWNER_BYTES_MAX => Ok(()),
        bytes => Err(StoreError::Refused(format!(
            "a manager's name has {bytes} bytes, and 1 … {OWNER_BYTES_MAX} are taken"
        ))),
    }
}

pub(super) fn check_bytes(
    id: &TaskId,
    what: &str,
    bytes: usize,
    bytes_max: usize,
) -> Result<(), StoreError> {
    match bytes <= bytes_max {
        true => Ok(()),
        false => {
            Err(refused(id, &format!("its {what} has {bytes} bytes, and at most {bytes_max} fit")))
        }
    }
}

fn refused(id: &TaskId, what: &str) -> StoreError {
    StoreError::Refused(format!("task {id}: {what}"))
}
