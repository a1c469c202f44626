//! Sums are written from time to time, not with every append: a busy meter's sum changes with each of them.
//! Until then what is new is summed up in memory, and the log says which blocks to read again after a crash.

use super::engine::{Engine, Progress, UsageView};
use super::key::{self, Level};
use crate::storage::StoreError;
use crate::storage::fjall::Engine as _;
use crate::store::tally::{Tallies, Tally};
use std::collections::HashMap;

/// Number of records that a start may have to read again: about 100 ms.
const RECORDS_BEHIND_MAX: usize = 256 * 1024;

/// The same for small appends, each of which makes a block.
const BLOCKS_BEHIND_MAX: usize = 1024;

/// Number of sums in memory: about 4 MB with names of 30 letters.
const TALLIES_MAX: usize = 16 * 1024;

/// True if enough has accumulated for a checkpoint.
pub(super) fn is_due(progress: &Progress, tallies: &Tallies) -> bool {
    progress.records_behind >= RECORDS_BEHIND_MAX
        || progress.behind.len() >= BLOCKS_BEHIND_MAX
        || tallies.len() >= TALLIES_MAX
}

/// Adds what is new to the sums.
///
/// Not synced: until the next append is, a power cut takes the sums and the log back together.
pub(super) fn write(
    engine: &Engine,
    view: &UsageView,
    progress: &mut Progress,
) -> Result<(), StoreError> {
    if progress.behind.is_empty() {
        return Ok(());
    }
    engine.tables().wait_for_room()?;
    let trouble = |error| engine.trouble(&error);
    let mut batch = engine.db.batch();
    for (key, mut tally) in levels(&view.read().summary) {
        if let Some(stored) = engine.sums.get(&key).map_err(trouble)? {
            tally.add(&key::decode_tally(&stored).ok_or_else(|| engine.damaged("a sum"))?);
        }
        batch.insert(&engine.sums, key, key::encode_tally(&tally));
    }
    for number in &progress.behind {
        batch.remove(&engine.log, key::behind(*number));
    }
    let mut inside = view.write();
    batch.commit().map_err(trouble)?;
    inside.summary = Tallies::default();
    progress.behind.clear();
    progress.records_behind = 0;
    Ok(())
}

fn levels(tallies: &Tallies) -> HashMap<Vec<u8>, Tally> {
    let mut rows = HashMap::<_, Tally>::with_capacity(tallies.len() * 2);
    for (key, tally) in tallies.iter() {
        for level in Level::ALL {
            rows.entry(key::sum(key, level)).or_default().add(tally);
        }
    }
    rows
}
