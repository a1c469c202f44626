//! Sums of all tenants by meter and by client: what a query over all tenants reads, however many there are. They
//! are written with the sums of tenants, in the same commit, and have the same keys: the first name says by what
//! they are.

use super::engine::Engine;
use super::key::{self, Level};
use crate::storage::StoreError;
use crate::storage::fjall::Engine as _;
use crate::store::tally::{Tally, TallyKey};
use std::collections::HashMap;
use std::sync::Arc;

/// First names of the keys.
pub(super) const BY_METER: &str = "meter";
pub(super) const BY_CLIENT: &str = "client";

/// Rows that are collected before they are written, when the totals of an older store are made.
const AT_ONCE: usize = 16 * 1024;

/// Rows of totals that are to be added to those that are stored.
#[derive(Default)]
pub(super) struct Totals(HashMap<Vec<u8>, Tally>);

// === impl Totals ===

impl Totals {
    /// Adds a sum to the totals of its meter and of its client.
    pub(super) fn add(&mut self, key: &TallyKey, level: Level, tally: &Tally) {
        let mut total = TallyKey { tenant: Arc::from(BY_METER), ..key.clone() };
        self.0.entry(key::sum(&total, level)).or_default().add(tally);
        total.tenant = Arc::from(BY_CLIENT);
        total.meter = std::mem::replace(&mut total.client, Arc::from(""));
        self.0.entry(key::sum(&total, level)).or_default().add(tally);
    }

    /// Adds them to a commit.
    pub(super) fn write(
        self,
        engine: &Engine,
        batch: &mut fjall::OwnedWriteBatch,
    ) -> Result<(), StoreError> {
        for (key, mut tally) in self.0 {
            let stored = engine.totals.get(&key).map_err(|error| engine.trouble(&error))?;
            if let Some(stored) = stored {
                tally.add(&key::decode_tally(&stored).ok_or_else(|| engine.damaged("a total"))?);
            }
            batch.insert(&engine.totals, key, key::encode_tally(&tally));
        }
        Ok(())
    }
}

/// Makes the totals of a store from before they were kept, once. One that was interrupted begins anew.
pub(super) fn make_missing(engine: &Engine) -> Result<(), StoreError> {
    let trouble = |error| engine.trouble(&error);
    if engine.log.contains_key(key::TOTALS).map_err(trouble)? {
        return Ok(());
    }
    super::retain::delete(engine, &engine.totals, |_| true, &[], &[0xff])?;
    let mut totals = Totals::default();
    for row in engine.sums.iter() {
        let (key, value) = row.into_inner().map_err(trouble)?;
        let sum = key::split_sum(&key).zip(key::decode_tally(&value));
        let ((key, level), tally) = sum.ok_or_else(|| engine.damaged("a sum"))?;
        totals.add(&key, level, &tally);
        if totals.0.len() >= AT_ONCE {
            commit(engine, std::mem::take(&mut totals), false)?;
        }
    }
    commit(engine, totals, true)
}

fn commit(engine: &Engine, totals: Totals, is_last: bool) -> Result<(), StoreError> {
    engine.tables().wait_for_all_room()?;
    let mut batch = engine.db.batch();
    totals.write(engine, &mut batch)?;
    if is_last {
        batch.insert(&engine.log, key::TOTALS, b"");
    }
    batch.commit().map_err(|error| engine.trouble(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tally::MINUTE_NS;
    use tidegate_core::usage::Currency;

    fn sum(tenant: usize, meter: &str, client: &str) -> TallyKey {
        TallyKey {
            tenant: format!("t{tenant}").into(),
            meter: meter.into(),
            minute_ns: 7 * MINUTE_NS,
            currency: Currency::USD,
            client: client.into(),
        }
    }

    fn stored(engine: &Engine) -> Vec<(Vec<u8>, u64)> {
        let row = |row: fjall::Guard| {
            let (key, value) = row.into_inner().unwrap();
            (key.to_vec(), key::decode_tally(&value).unwrap().records)
        };
        engine.totals.iter().map(row).collect()
    }

    /// Also when it is interrupted after some of them were written.
    #[test]
    fn the_totals_of_an_older_store_are_made_once() {
        let folder = std::env::temp_dir().join(format!("tidegate-totals-{}", std::process::id()));
        let engine = Engine::open_at(&folder).unwrap();
        let one = Tally { records: 1, ..Tally::default() };
        let mut expected = Totals::default();
        for tenant in 0..300 {
            let key = sum(tenant, ["m1", "m2"][tenant % 2], ["", "a", "b"][tenant % 3]);
            for level in Level::ALL {
                engine.sums.insert(key::sum(&key, level), key::encode_tally(&one)).unwrap();
                expected.add(&key, level, &one);
            }
        }
        let mut expected: Vec<_> = expected.0.into_iter().map(|(k, t)| (k, t.records)).collect();
        expected.sort();
        assert_eq!(expected.len(), 3 * (2 * 3 + 3));
        let mut half = Totals::default();
        half.add(&sum(0, "m1", ""), Level::Day, &one);
        commit(&engine, half, false).unwrap();
        for _ in 0..2 {
            make_missing(&engine).unwrap();
            assert_eq!(stored(&engine), expected);
        }
        drop(engine);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
