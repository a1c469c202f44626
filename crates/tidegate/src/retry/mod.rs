//! A client that tries again without making an overload worse.
//!
//! [`RetryClient`] runs any asynchronous operation, or sends through any HTTP service
//! ([`send`](RetryClient::send)), and repeats what failed:
//!
//! - never before the time that the server named, and a little later by chance, so that those who were refused
//!   together do not return together;
//! - never what may have started, unless the caller says that it may run twice;
//! - never more often in all than a share of the requests: clones share one [`RetryBudget`];
//! - never past the deadline: a wait that would end after it is not begun.
//!
//! The result has the last answer or error, the number of tries, the reason to stop, and the request if no server
//! can have started it. The decisions themselves are pure and can be used alone: [`decide`], [`RetryBudget`],
//! [`RetryAfter`], [`Decorrelated`].
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use tidegate::retry::{Failed, RetryClient, Safety};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let client = RetryClient::default();
//! let mut calls = 0;
//! let answered = client
//!     .run("a question", Safety::Once, |question| {
//!         calls += 1;
//!         let (question, refused) = (*question, calls == 1);
//!         async move {
//!             if refused {
//!                 return Err(Failed::refused("busy").after(Duration::from_secs(2)));
//!             }
//!             Ok(format!("the answer to {question}"))
//!         }
//!     })
//!     .await
//!     .expect("the second try is answered");
//! assert_eq!(answered.value, "the answer to a question");
//! assert_eq!(answered.attempts, 2);
//! assert!(answered.elapsed >= Duration::from_secs(2), "not before the server asked for it");
//! # }
//! ```

mod client;
mod http_answer;
mod outcome;

pub use client::RetryClient;
pub use http_answer::{HttpFailure, method_safety, read_answer, server_said};
pub use outcome::{Answered, Failed, Stopped};
pub use tidegate_core::retry::{
    BudgetLimits, BudgetUse, Decision, Decorrelated, FailedAttempt, Failure, GiveUpReason,
    RetryAfter, RetryBudget, RetryHeaders, RetryOn, RetryPolicy, Safety, decide, full_jitter,
    http_date,
};
