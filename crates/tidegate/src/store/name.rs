use super::{BatchRefusal, PricedBatch};

/// Maximum length in bytes of a sender's, a tenant's or a meter's name.
///
/// Names are keys. Twice as many (a name of control characters only, escaped) and once more for the meter still
/// fit into a third of a page, which is the longest key that PostgreSQL's indexes take.
pub const NAME_BYTES_MAX: usize = 512;

/// Checks that all names of a batch are short enough to be keys.
pub(crate) fn check(batch: &PricedBatch) -> Result<(), BatchRefusal> {
    let too_long = |name: &str| name.len() > NAME_BYTES_MAX;
    let sender = batch.origin.as_ref().is_some_and(|origin| too_long(&origin.sender));
    let inside = |record: &tidegate_core::usage::UsageRecord| {
        too_long(&record.tenant) || too_long(&record.meter)
    };
    if sender || batch.records.iter().any(|priced| inside(&priced.record)) {
        return Err(BatchRefusal::NameTooLong);
    }
    Ok(())
}
