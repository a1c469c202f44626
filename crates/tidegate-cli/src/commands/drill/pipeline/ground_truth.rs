use super::sender::Sent;
use rust_decimal::prelude::ToPrimitive as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate::store::{AnyStore, Store as _, StoreError};

/// Records of a drill that are in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroundTruth {
    /// Distinct records.
    pub stored: u64,
    /// Duplicates of records.
    pub twice: u64,
}

/// Record numbers of a sender that were found: one bit each.
struct SeenNumbers(Vec<u64>);

impl GroundTruth {
    /// Reads the store and counts the records of these senders.
    pub async fn read(store: &AnyStore, sent: &[Sent]) -> Result<Self, StoreError> {
        let words = |sent: &Sent| vec![0; (sent.issued / 64 + 1) as usize];
        let mut found: BTreeMap<Arc<str>, SeenNumbers> =
            sent.iter().map(|sent| (Arc::clone(&sent.tenant), SeenNumbers(words(sent)))).collect();
        let mut totals = Self::default();
        // The whole range of times: the clock may have been set meanwhile.
        let mut records = store.scan(i64::MIN / 2, i64::MAX / 2);
        while let Some(block) = records.next().await {
            for priced in block? {
                let number = priced.record.quantity.to_u64();
                let of = found.get_mut(&priced.record.tenant);
                match of.zip(number).and_then(|(found, number)| found.see(number)) {
                    Some(true) => totals.stored += 1,
                    Some(false) => totals.twice += 1,
                    None => {}
                }
            }
        }
        Ok(totals)
    }
}

// === impl SeenNumbers ===

impl SeenNumbers {
    /// True the first time; `None` for a number that was never sent.
    fn see(&mut self, number: u64) -> Option<bool> {
        let word = self.0.get_mut((number / 64) as usize)?;
        let bit = 1 << (number % 64);
        let is_first = *word & bit == 0;
        *word |= bit;
        Some(is_first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once() {
        let mut found = SeenNumbers(vec![0; 2]);
        let seen = [1, 64, 1, 127, 128].map(|number| found.see(number));
        assert_eq!(seen, [Some(true), Some(true), Some(false), Some(true), None]);
    }
}
