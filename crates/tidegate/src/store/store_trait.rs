use super::{
    Appended, PricedBatch, Records, StoreError, Unstored, UsagePage, UsageQuery, UsageRow,
};
use rust_decimal::Decimal;
use std::sync::Arc;
use tidegate_core::sequence::SeqWindow;

/// A store of priced records.
///
/// One conformance suite runs on every implementation; `tests/store` has it.
pub trait Store: Send + Sync + 'static {
    /// Makes all batches durable, or none: when this returns `Ok`, a power cut loses nothing of them. A batch
    /// whose [origin](super::Origin) is already stored, or comes twice in one call, counts once.
    ///
    /// # Errors
    ///
    /// Gives the batches back, as they were, when they could not be stored. When the store went away while it
    /// committed, they may be stored nevertheless: repeating them is safe for all that have an origin.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, either all batches were stored or none; repeating the call finds out which, except for
    /// batches without an origin, which then count twice.
    fn append(
        &self,
        batches: Vec<PricedBatch>,
    ) -> impl Future<Output = Result<Vec<Appended>, Unstored>> + Send;

    /// As [`append`](Self::append), with the number of series that each batch began: 0 from a store that does not
    /// count them.
    ///
    /// # Errors
    ///
    /// As for [`append`](Self::append).
    ///
    /// # Cancel safety
    ///
    /// As for [`append`](Self::append).
    fn append_counted(
        &self,
        batches: Vec<PricedBatch>,
    ) -> impl Future<Output = Result<Vec<(Appended, u64)>, Unstored>> + Send {
        async move {
            let appended = self.append(batches).await?;
            Ok(appended.into_iter().map(|appended| (appended, 0)).collect())
        }
    }

    /// Deletes what is older than the day (UTC) that `before_ns` is in: records, sums, and the numbers of senders
    /// that have sent nothing since. Returns how many rows of the store are gone. Call it from time to time, or
    /// never.
    ///
    /// # Errors
    ///
    /// When the store can't be changed; some may be gone already, and calling again goes on.
    fn retain(&self, before_ns: i64) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// The records of `from_ns .. until_ns` as they were stored.
    fn scan(&self, from_ns: i64, until_ns: i64) -> Records;

    /// Which batches of a sender are stored. A sender that is not known has none.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn seen(&self, sender: &str) -> impl Future<Output = Result<SeqWindow, StoreError>> + Send;

    /// The client that owns a sender's name: empty for a sender without a token, `None` while nobody owns it.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn owner(
        &self,
        sender: &str,
    ) -> impl Future<Output = Result<Option<Arc<str>>, StoreError>> + Send;

    /// Usage of a meter by a tenant in `from_ns .. until_ns`, both at the start of a minute. The largest number
    /// stands for a sum beyond it, to which no price can be computed.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn used(
        &self,
        tenant: &str,
        meter: &str,
        from_ns: i64,
        until_ns: i64,
    ) -> impl Future<Output = Result<Decimal, StoreError>> + Send;

    /// A page of the sums of what is stored, in the order of their names. Its memory is bounded by the query's
    /// limit, whatever is stored. Each page has what is stored when it is read.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn usage_page(
        &self,
        query: &UsageQuery,
    ) -> impl Future<Output = Result<UsagePage, StoreError>> + Send;

    /// All pages from this one on. Their number, and so the memory, is as large as what is stored.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    fn usage(
        &self,
        query: &UsageQuery,
    ) -> impl Future<Output = Result<Vec<UsageRow>, StoreError>> + Send {
        async move {
            let (mut query, mut rows) = (query.clone(), Vec::new());
            loop {
                let page = self.usage_page(&query).await?;
                rows.extend(page.rows);
                match page.next {
                    Some(next) => query.after = Some(next),
                    None => return Ok(rows),
                }
            }
        }
    }
}
