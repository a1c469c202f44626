use super::sender::Sent;
use rust_decimal::prelude::ToPrimitive as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate::store::{AnyStore, Store as _, StoreError};

/// What is in the store of what was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Records that are there, each counted once.
    pub stored: u64,
    /// Records that are there again.
    pub twice: u64,
}

/// Which records of a sender were found: a bit for each number.
struct Found(Vec<u64>);

impl Truth {
    /// Reads all records, and tells those apart that these senders sent.
    pub async fn read(store: &AnyStore, sent: &[Sent]) -> Result<Self, StoreError> {
        let words = |sent: &Sent| vec![0; (sent.issued / 64 + 1) as usize];
        let mut found: BTreeMap<Arc<str>, Found> =
            sent.iter().map(|sent| (Arc::clone(&sent.tenant), Found(words(sent)))).collect();
        let mut truth = Self::default();
        // Times are those of the clock, which may have been put right meanwhile.
        let mut records = store.scan(i64::MIN / 2, i64::MAX / 2);
        while let Some(block) = records.next().await {
            for priced in block? {
                let number = priced.record.quantity.to_u64();
                let of = found.get_mut(&priced.record.tenant);
                match of.zip(number).and_then(|(found, number)| found.see(number)) {
                    Some(true) => truth.stored += 1,
                    Some(false) => truth.twice += 1,
                    None => {}
                }
            }
        }
        Ok(truth)
    }
}

// === impl Found ===

impl Found {
    /// Whether this is the first time; `None` for a number that was never sent.
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
        let mut found = Found(vec![0; 2]);
        let seen = [1, 64, 1, 127, 128].map(|number| found.see(number));
        assert_eq!(seen, [Some(true), Some(true), Some(false), Some(true), None]);
    }
}
