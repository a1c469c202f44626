//! Clients that are refused and return, at an executor or a gateway without a queue, beside other retry policies.
//!
//! May use the retry advice and the retry client of `tidegate-core`, the agenda and random draws. Must not know
//! scenario files, commands or files.
//!
//! Each client has some requests and sends one at a time. A request that finds no free slot is refused, and its
//! client tries again by a [`ReturnPolicy`]. [`run`] gives the figures of one policy and one seed; [`judge`] sets
//! clients that honour the advice beside the best policy that polls and beside a queue, which loses no time.
//!
//! ```
//! use tidegate_sim::returns::{AdvisedClient, Advisor, ReturnCase, judge};
//!
//! let six_on_three = ReturnCase { clients: 6, slots: 3, ..ReturnCase::default() };
//! let judged = judge(&six_on_three, Advisor::Executor, AdvisedClient::Exact, &[1, 2, 3]);
//! assert!(judged.ratio() < 1.3, "{judged:?}");
//! ```

mod advisor;
mod case;
mod judge;
mod policy;
mod simulation;

pub use advisor::Advisor;
pub use case::{ReturnCase, ServiceShape};
pub use judge::{ATTEMPTS_MAX, Judged, Rival, best_rival, grid, judge, judge_against};
pub use policy::{AdvisedClient, ReturnPolicy};
pub use simulation::{ReturnFigures, run};
