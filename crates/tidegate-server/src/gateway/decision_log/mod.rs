//! The decision log: a stream of the decisions of a running gateway, for a replay with other limits.
//!
//! While no client records, a request costs one look at a flag. While one does, the decision on a request goes
//! into a bounded buffer when the request ends; decisions that find no room there are counted, and the count is
//! written. May use the tracker and the format in `tidegate::decision_log`. Must not know how requests are
//! proxied.

mod answer;
mod decision;
mod decision_log;
mod recorder;
mod stream;

pub use answer::{DecisionSource, RecordError, answer};
pub use decision::{Decision, Verdict};
pub use decision_log::{DecisionLog, RECORDERS_MAX};
pub use recorder::{DecisionRecorder, PendingDecision};
pub use stream::DecisionStream;
