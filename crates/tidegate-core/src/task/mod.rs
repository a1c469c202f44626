//! Tasks: their specification, their state machine and their endings.
//!
//! Uses the priorities of `admission` and suggestions. Must not know stores, managers or executors.

mod ending;
mod id;
mod output;
mod runtime;
mod spec;
mod state;
mod step;

pub use ending::{EndReason, Ending, TaskOutcome};
pub use id::{ExecutionKey, IdError, TaskId};
pub use output::{OutputChunk, OutputStream};
pub use runtime::find_runtime;
#[cfg(feature = "ingest")]
pub use runtime::runtime_hint;
pub use spec::{SpecError, TaskLimits, TaskSpec};
pub use state::{TaskAssignment, TaskState, TaskStatus};
pub use step::{StaleEvent, TaskEvent};
