//! Sessions with workers: the port that they dial, their two connections, and the state that both share.
//! Uses `session`, `execution`, TLS of `http`, and the trust between nodes of `cluster`.
//! Must not know tasks, the queue or the store.

mod accept;
mod consumer;
mod control;
mod data;
mod dispatch;
mod hub;
mod joining;
mod members;
mod mirror;
mod roster;
mod session_event;
mod stats;
mod view;
mod worker_session;

pub use accept::{SessionPort, SessionPortError};
pub use dispatch::ToWorker;
pub(super) use hub::Told;
pub use hub::{HubSettings, WorkerHub};
pub use members::HubMembers;
pub(super) use session_event::{ProgressBatch, SessionEvent, SessionInlet, session_channels};
pub use stats::StatsView;
pub use view::{WorkerList, WorkerView, write_worker_metrics};
pub use worker_session::WorkerSession;
pub(super) use worker_session::{Asked, Waited};
