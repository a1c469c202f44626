//! One execution: the contract's messages, its work, output, progress and stop signal.
//! Uses the types of a task alone.
//! Must not know managers, executors, sandboxes or HTTP.

mod contract;
mod output_log;
mod output_sink;
mod progress_sink;
mod stop_signal;
mod work;

pub use contract::{
    CapacityReport, DeletedExecution, ExecuteBody, ExecutionQuery, ExecutionState, ExecutionView,
    ProgressAccepted, ReserveBody, Reserved, SandboxLayer, Started,
};
pub use output_log::{OutputLog, OutputPage, floor_char};
pub use output_sink::OutputSink;
pub use progress_sink::{ProgressClosed, ProgressSink, ProgressSnapshot};
pub use stop_signal::{StopReason, StopSignal, StopSwitch};
pub use work::Work;
