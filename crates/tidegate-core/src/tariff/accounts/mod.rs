//! Accounts: the usage of each tenant and meter by period, in a bounded cache.
//!
//! Uses the checked tariffs. Must not know batches beyond their numbers, or where sums are stored.

mod account;
mod cache;
mod sums;

pub(super) use cache::AccountCache;
pub use cache::{ACCOUNT_KEYS_DEFAULT, AccountCacheStats};
pub(super) use sums::Sum;
