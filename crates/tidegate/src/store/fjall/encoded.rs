use super::block::BlockBuilder;
use super::key::DAY_NS;
use crate::store::PricedBatch;
use crate::store::tally::Tallies;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Encoded batches of an append.
pub(super) struct Encoded {
    pub(super) blocks: Vec<(i64, Vec<u8>)>,
    pub(super) tallies: Tallies,
    pub(super) records: usize,
}

// === impl Encoded ===

impl Encoded {
    pub(super) fn new<'a>(batches: impl Iterator<Item = &'a PricedBatch>) -> Self {
        let mut encoded = Self { blocks: Vec::new(), tallies: Tallies::default(), records: 0 };
        let mut days = BTreeMap::<i64, BlockBuilder>::new();
        let records = batches.flat_map(|batch| {
            let client = Arc::<str>::from(batch.client());
            batch.records.iter().map(move |priced| (Arc::clone(&client), priced))
        });
        for (client, priced) in records {
            let builder = days.entry(priced.record.time_ns.div_euclid(DAY_NS)).or_default();
            builder.push(&client, priced);
            if builder.is_full() {
                encoded.blocks.extend(builder.finish());
            }
            encoded.tallies.count(&client, priced);
            encoded.records += 1;
        }
        encoded.blocks.extend(days.values_mut().filter_map(BlockBuilder::finish));
        encoded
    }
}
