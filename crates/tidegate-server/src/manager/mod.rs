//! Tasks: taken in, kept, placed on executors, followed to their end.

mod actor;
mod attempt;
mod book;
mod command;
mod commands;
mod desk;
#[cfg(test)]
pub(crate) mod double;
mod error;
mod event;
mod events;
mod following;
mod here;
mod housekeeping;
mod http_link;
mod keeping;
mod leases;
mod link;
mod local_link;
mod meters;
mod metrics;
mod node;
mod placing;
mod recovery;
mod runtimes;
mod start;
mod terms;
mod view;
mod views;

pub use desk::{TaskDesk, Watch};
pub use error::DeskError;
pub use here::HereError;
pub use meters::{ExecutorGauge, ManagerGauges, ManagerMeters, MeterSnapshot, Repeated};
pub use metrics::write_metrics;
pub use node::{TaskNode, TaskNodeError};
pub use start::{Manager, Place};
pub use terms::ManagerTerms;
pub use view::{ExecutorList, ExecutorView, Submit, TaskList, TaskNotice, TaskView};
