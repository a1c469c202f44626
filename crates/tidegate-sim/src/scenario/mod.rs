//! What is to happen, as `scenarios/*.toml` write it down: load, faults, and what is expected to come of it. The
//! simulator and the drill run the same.

mod check;
mod class;
mod executors;
mod expectation;
mod fault;
mod gateway;
mod load;
mod mistake;
mod pipeline;
mod read;
mod service;
mod shorten;
mod whole;

pub use class::{Class, RetryPlan, RetryWait};
pub use executors::ExecutorsWorld;
pub use expectation::{Expectation, Mode, What};
pub use fault::{Fault, FaultKind};
pub use gateway::{GatewayWorld, Limits, Tenant, Workers};
pub use load::{Phase, PhaseSpan, Spacing, Wave};
pub use mistake::{Mistake, ScenarioError};
pub use pipeline::{OTHERS_FASTER, PipelineWorld};
pub use service::{Service, Work};
pub use whole::{Scenario, Short, World};
