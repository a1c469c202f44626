//! What a task is, what may become of it, and who may say so.

mod ending;
mod id;
mod output;
mod spec;
mod state;
mod step;

pub use ending::{EndReason, Ending, Outcome};
pub use id::{ExecutionKey, IdError, TaskId};
pub use output::{OutputChunk, OutputStream};
pub use spec::{SpecError, TaskLimits, TaskSpec};
pub use state::{Placed, TaskState, TaskStatus};
pub use step::{Stale, TaskEvent};
