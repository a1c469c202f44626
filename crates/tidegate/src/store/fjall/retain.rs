use super::engine::Engine;
use super::key::{self, Level};
use crate::storage::StoreError;
use crate::storage::fjall::Engine as _;
use fjall::Keyspace;

/// Number of rows that are deleted at once.
const ROWS_AT_ONCE: usize = 4096;

/// Deletes what is before a day's start, and says how many rows that were.
pub(super) fn delete_before(engine: &Engine, day_ns: i64) -> Result<u64, StoreError> {
    let mut deleted = delete(engine, &engine.blocks, |_| true, &[], &key::ordered(day_ns))?;
    // Totals are no rows of anybody's.
    deleted += delete_sums(engine, &engine.sums, day_ns)?;
    delete_sums(engine, &engine.totals, day_ns)?;
    super::series::forget_old(engine)?;
    let idle =
        |value: &[u8]| value.first_chunk().is_some_and(|since| i64::from_be_bytes(*since) < day_ns);
    Ok(deleted + delete(engine, &engine.senders, idle, &[], &[0xff])?)
}

fn delete_sums(engine: &Engine, sums: &Keyspace, day_ns: i64) -> Result<u64, StoreError> {
    let mut deleted = 0;
    let mut pair = super::read::next_pair(engine, sums, &[])?;
    while let Some(found) = pair {
        for level in Level::ALL {
            let (from, until) =
                (level.start(&found.prefix, i64::MIN), level.start(&found.prefix, day_ns));
            deleted += delete(engine, sums, |_| true, &from, &until)?;
        }
        pair = super::read::next_pair(engine, sums, &found.after())?;
    }
    Ok(deleted)
}

pub(super) fn delete(
    engine: &Engine,
    keyspace: &Keyspace,
    is_old: impl Fn(&[u8]) -> bool,
    from: &[u8],
    until: &[u8],
) -> Result<u64, StoreError> {
    let trouble = |error| engine.trouble(&error);
    let mut deleted = 0;
    let mut rows = keyspace.range(from..until);
    loop {
        let (mut batch, mut seen) = (engine.db.batch(), 0);
        for row in rows.by_ref().take(ROWS_AT_ONCE) {
            let (key, value) = row.into_inner().map_err(trouble)?;
            seen += 1;
            if is_old(&value) {
                batch.remove(keyspace, key);
            }
        }
        if !batch.is_empty() {
            deleted += batch.len() as u64;
            engine.tables().wait_for_all_room()?;
            batch.commit().map_err(trouble)?;
        }
        if seen < ROWS_AT_ONCE {
            return Ok(deleted);
        }
    }
}
