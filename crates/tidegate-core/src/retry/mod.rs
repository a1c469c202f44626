//! Coming back after a refusal without making it worse: how long to wait, whether to, and how often in all.
//!
//! Retries are load, and they come when there is already too much of it. So a client waits at least as long as
//! the server said, moves its wait by chance so that those who were refused together do not return together
//! ([`Decorrelated`]), repeats nothing that may have started unless it may run twice ([`decide`]), and spends no
//! more on retries than a share of its requests ([`RetryBudget`]).
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
//! let tried = Tried {
//!     server: RetryAfter::parse("2", Duration::ZERO),
//!     ..Tried::first(Failure::Refused, Safety::Once)
//! };
//! match decide(&policy, &tried, 0.25) {
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
pub use decide::{Decision, Failure, GiveUp, RetryOn, RetryPolicy, Safety, Tried, decide};
pub use http_date::http_date;
pub use retry_after::{RetryAfter, ServerSaid};
