//! The task manager: accepts tasks, persists them, dispatches them to executors, and follows them to their end.
//! Uses `executor`, `sandbox`, `execution`, `http` and `config`.
//! Must not know the HTTP API of tasks, nor the gateway.

mod actor;
mod attempt;
mod background;
mod command;
mod env_key;
mod error;
mod event;
#[cfg(test)]
pub(crate) mod fake_manager;
mod handle;
mod link;
mod local_executor;
mod manager;
mod metrics;
mod node;
mod persistence;
mod sealed_elsewhere;
mod sessions;
mod settings;
mod unix_time;
mod view;

pub use env_key::{EnvKey, EnvKeyError};
pub use error::TaskError;
pub use handle::ManagerHandle;
pub use link::{ExecutorTarget, HttpTarget};
pub use local_executor::LocalExecutorError;
pub use manager::{Manager, ManagerExecutors};
pub use metrics::{
    ExecutorGauge, ManagerGauges, ManagerMeters, MeterSnapshot, RetryCause, write_metrics,
};
pub use node::{TaskNode, TaskNodeError};
pub use sealed_elsewhere::SealedElsewhere;
pub use sessions::{
    HubMembers, HubSettings, SessionPort, SessionPortError, StatsView, WorkerHub, WorkerList,
    WorkerView, write_worker_metrics,
};
pub use settings::ManagerSettings;
pub use view::{
    ExecutorList, ExecutorView, ProgressSeriesView, ProgressView, Submit, TaskList, TaskNotice,
    TaskView, TaskWatch,
};
