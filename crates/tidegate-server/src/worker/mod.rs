//! An executor: so many slots, what runs in them, and the contract over HTTP by which they are had.

mod contract;
mod output;
pub mod process;
mod work;

pub use contract::{
    CapacityReport, DeletedExecution, ExecuteBody, ExecutionState, ExecutionView, ReserveBody,
    Reserved, SandboxLayer, Started,
};
pub use work::{OutputSink, StopSignal, StopSwitch, StopWhy, Work};
