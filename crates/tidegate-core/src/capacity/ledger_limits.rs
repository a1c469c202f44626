//! Bounds of the slot ledger, apart from it so that its refusals can name them.

use std::time::Duration;

/// Maximum number of executors.
pub(super) const EXECUTORS_MAX: usize = 10_000;
/// Maximum number of slots of one executor.
pub(super) const SLOTS_MAX: u32 = 10_000;
/// Maximum length of an executor's name, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 256;
/// Maximum number of executors in one request.
pub(super) const REQUEST_EXECUTORS_MAX: usize = 1_024;
/// Maximum number of waiting holders.
pub(super) const WAITERS_MAX: usize = 100_000;
/// Maximum number of queue entries at all executors together: a waiter for any of ten executors has ten
/// entries.
pub(super) const QUEUE_ENTRIES_MAX: usize = 500_000;
/// Time until an executor that is not declared again is forgotten.
pub(super) const DECLARED_FOR: Duration = Duration::from_secs(3_600);
/// Longest ttl: a slot that is never released returns within a day.
pub(super) const TTL_MAX: Duration = Duration::from_secs(86_400);
