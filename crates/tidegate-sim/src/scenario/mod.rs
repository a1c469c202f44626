//! Scenarios as `scenarios/*.toml` define them: load, faults and expectations, for the simulator and for drills.
//!
//! May use the types of `tidegate-core`. Must not know how a scenario is run or reported.

mod check;
mod class;
mod error;
mod executors;
mod expectation;
mod fault;
mod gateway;
mod load;
mod pipeline;
mod policy;
mod read;
mod service;
mod shorten;
mod whole;

pub use class::{Class, RetryPlan, RetryWait};
pub use error::{FieldError, ScenarioError};
pub use executors::ExecutorsWorld;
pub use expectation::{Expectation, Mode, What};
pub use fault::{Fault, FaultKind};
pub use gateway::{GatewayWorld, Limits, Tenant, UpstreamLimit, Upstreams};
pub use load::{Phase, PhaseSpan, Spacing, Wave};
pub use pipeline::{OTHERS_FASTER, PipelineWorld};
pub use policy::{Policy, UnknownPolicy};
pub use service::{Service, Work};
pub use whole::{Scenario, Short, World};
