//! Retries after a refusal: their waits, their conditions and their budget.
//!
//! Retries are load, and arrive when there is already too much of it. A client therefore waits at least as long as
//! the server asked, adds jitter so that clients refused together do not return together ([`Decorrelated`]),
//! repeats nothing that may have started unless it is idempotent ([`decide`]), and spends no more on retries than
//! a share of its requests ([`RetryBudget`]).
//!
//! Uses the crate's atomics. Must not know clocks, connections or an HTTP library.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_core::retry::*;
//!
//! let policy = RetryPolicy::default();
//! let budget = RetryBudget::new(BudgetLimits::default());
//! let now = Duration::from_secs(5);
//!
//! budget.record_request(now);
//! let attempt = FailedAttempt {
//!     hint: RetryAfter::parse("2", Duration::ZERO),
//!     ..FailedAttempt::first(Failure::Refused, Safety::Once)
//! };
//! match decide(&policy, &attempt, 0.25) {
//!     Decision::Retry { after } if budget.try_retry(now) => assert!(after >= Duration::from_secs(2)),
//!     other => panic!("{other:?}"),
//! }
//! ```

mod backoff;
mod budget;
mod decide;
mod http_date;
mod retry_after;

pub use backoff::{Decorrelated, full_jitter};
pub use budget::{BudgetLimits, BudgetUse, RetryBudget};
pub use decide::{
    Decision, FailedAttempt, Failure, GiveUpReason, RetryOn, RetryPolicy, Safety, decide,
};
pub use http_date::http_date;
pub use retry_after::{RetryAfter, RetryHeaders};
