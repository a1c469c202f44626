//! An executor: so many slots, what runs in them, and the contract over HTTP by which they are had.

mod contract;

pub use contract::{
    CapacityReport, DeletedExecution, ExecuteBody, ExecutionState, ExecutionView, ReserveBody,
    Reserved, SandboxLayer, Started,
};
