//! Sums are written from time to time, not with every append: a busy meter's sum changes with each of them.
//! Until then what is new is summed up in memory, and the log says which blocks to read again after a crash.
//!
//! A checkpoint is written in slices, between which appends are served. Each slice is one commit: some sums in
//! the order of their keys, and in the log up to which key the blocks of the checkpoint are covered. After a crash
//! only what is beyond that key is summed up again. The last slices remove the blocks from the log.

use super::engine::{Checkpoint, Engine, Progress, UsageView};
use super::key::{self, Level};
use super::recent::Recent;
use super::series::{PendingSeries, write_pending};
use super::totals::Totals;
use crate::storage::StoreError;
use crate::storage::fjall::Engine as _;
use crate::store::tally::{Tally, TallyKey};
use std::collections::HashMap;

/// Number of records that a start may have to read again: about 100 ms.
const RECORDS_BEHIND_MAX: usize = 256 * 1024;

/// The same for small appends, each of which makes a block.
const BLOCKS_BEHIND_MAX: usize = 1024;

/// Number of sums in memory: about 4 MB with names of 30 letters.
const TALLIES_MAX: usize = 16 * 1024;

/// Multiple of the bounds from which on large appends wait until as many sums are written as those before added:
/// until then a checkpoint is written while the writer has nothing else to do.
const PAY_FACTOR: usize = 2;

/// Multiple of the bounds that may accumulate, also while the tables of sums are being written: beyond it appends
/// wait for the checkpoint.
const BEHIND_FACTOR: usize = 4;

/// Number of sums in a slice: with rows for three levels and a new series about 256 rows, which take 0.2 ms.
pub(super) const SLICE_TALLIES: usize = 64;

/// Number of blocks that a slice removes from the log.
const SLICE_BLOCKS: usize = 256;

/// The part of a checkpoint that has to be written after an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    /// One slice now, and so many sums before the next large append.
    Tallies(usize),
    /// All of it, even if that means to wait for tables.
    All,
}

/// Begins a checkpoint if enough has accumulated, none is under way, and it would not wait.
pub(super) fn begin_if_due(engine: &Engine, view: &UsageView, progress: &mut Progress) {
    if progress.checkpoint.is_some() {
        return;
    }
    let factor = if engine.tables().has_all_room() { 1 } else { BEHIND_FACTOR };
    let fresh = view.read().summary.fresh_len();
    if exceeds(factor, progress.records_behind, progress.behind.len(), fresh) {
        begin(view, progress);
    }
}

/// Decides how much to write after an append that added so many sums.
pub(super) fn due(progress: &Progress, recent: &Recent, added: usize) -> Due {
    let Some(checkpoint) = &progress.checkpoint else { return Due::Nothing };
    let records = progress.records_behind + checkpoint.records;
    let blocks = progress.behind.len() + checkpoint.blocks.len();
    let exceeds = |factor| exceeds(factor, records, blocks, recent.len());
    if exceeds(BEHIND_FACTOR) {
        Due::All
    } else if exceeds(PAY_FACTOR) {
        Due::Tallies(added)
    } else {
        Due::Nothing
    }
}

fn exceeds(factor: usize, records: usize, blocks: usize, tallies: usize) -> bool {
    records >= factor * RECORDS_BEHIND_MAX
        || blocks >= factor * BLOCKS_BEHIND_MAX
        || tallies >= factor * TALLIES_MAX
}

/// Begins a checkpoint of all that is new. None is under way.
pub(super) fn begin(view: &UsageView, progress: &mut Progress) {
    view.write().summary.freeze();
    progress.checkpoint = Some(Checkpoint {
        until_block: progress.next_block,
        blocks: std::mem::take(&mut progress.behind),
        records: std::mem::take(&mut progress.records_behind),
        is_logged: false,
    });
}

/// Adds everything that is new to the sums.
pub(super) fn write_all(
    engine: &Engine,
    view: &UsageView,
    progress: &mut Progress,
    pending: &mut PendingSeries,
) -> Result<(), StoreError> {
    finish(engine, view, progress, pending)?;
    if !progress.behind.is_empty() {
        begin(view, progress);
    }
    finish(engine, view, progress, pending)
}

/// Writes the rest of the checkpoint under way.
pub(super) fn finish(
    engine: &Engine,
    view: &UsageView,
    progress: &mut Progress,
    pending: &mut PendingSeries,
) -> Result<(), StoreError> {
    while progress.checkpoint.is_some() {
        engine.tables().wait_for_all_room()?;
        write_slice(engine, view, progress, pending)?;
    }
    Ok(())
}

/// Writes the next slice of the checkpoint under way. There must be room in the tables.
///
/// Not synced: a power cut takes back the sums and the log together, and all that was committed later. A table
/// can't have sums whose log was taken back: the engine syncs the journal before it writes a table.
pub(super) fn write_slice(
    engine: &Engine,
    view: &UsageView,
    progress: &mut Progress,
    pending: &mut PendingSeries,
) -> Result<(), StoreError> {
    let Some(checkpoint) = &mut progress.checkpoint else { return Ok(()) };
    let trouble = |error| engine.trouble(&error);
    let mut batch = engine.db.batch();
    let recent = view.read();
    let slice: Vec<_> = recent.summary.next_frozen(SLICE_TALLIES).collect();
    let written = slice.len();
    totals(&slice).write(engine, &mut batch)?;
    for (key, (mut tally, is_new)) in rows(&slice, pending) {
        // A new series has no rows yet.
        if !is_new && let Some(stored) = engine.sums.get(&key).map_err(trouble)? {
            tally.add(&key::decode_tally(&stored).ok_or_else(|| engine.damaged("a sum"))?);
        }
        batch.insert(&engine.sums, key, key::encode_tally(&tally));
    }
    let series = write_pending(engine, pending, slice.iter().map(|(key, _)| *key), &mut batch);
    let is_covered = written == recent.summary.frozen_len();
    let removed = if is_covered { checkpoint.blocks.len().min(SLICE_BLOCKS) } else { 0 };
    for number in &checkpoint.blocks[..removed] {
        batch.remove(&engine.log, key::behind(*number));
    }
    let is_last = is_covered && removed == checkpoint.blocks.len();
    if !is_last {
        let covered = slice.last().filter(|_| !is_covered).map(|(key, _)| *key);
        batch.insert(&engine.log, key::CHECKPOINT, key::covered(checkpoint.until_block, covered));
    } else if checkpoint.is_logged {
        batch.remove(&engine.log, key::CHECKPOINT);
    }
    drop(slice);
    drop(recent);
    let mut inside = view.write();
    batch.commit().map_err(trouble)?;
    inside.summary.remove_frozen(written);
    drop(inside);
    for series in series {
        pending.remove(&series);
    }
    checkpoint.blocks.drain(..removed);
    checkpoint.is_logged = true;
    if is_last {
        progress.checkpoint = None;
    }
    Ok(())
}

/// Totals of these sums. Those of many tenants are of few meters and clients: they are added up before keys are
/// made of them, because senders wait for the checkpoint.
fn totals(tallies: &[(&TallyKey, &Tally)]) -> Totals {
    let mut of_all: HashMap<_, (&TallyKey, Tally)> = HashMap::new();
    for (key, tally) in tallies {
        let same = (&*key.meter, &*key.client, key.minute_ns, key.currency);
        of_all.entry(same).or_insert_with(|| (key, Tally::default())).1.add(tally);
    }
    let mut totals = Totals::default();
    for (key, tally) in of_all.values() {
        Level::ALL.into_iter().for_each(|level| totals.add(key, level, tally));
    }
    totals
}

/// The rows of sums, and whether they are of a series without any.
fn rows(
    tallies: &[(&TallyKey, &Tally)],
    pending: &PendingSeries,
) -> HashMap<Vec<u8>, (Tally, bool)> {
    let mut rows = HashMap::<_, (Tally, bool)>::with_capacity(tallies.len() * Level::ALL.len());
    for (key, tally) in tallies {
        let is_new = pending.contains_key(&key.series());
        for level in Level::ALL {
            let row = rows.entry(key::sum(key, level)).or_default();
            row.0.add(tally);
            row.1 = is_new;
        }
    }
    rows
}
