//! Client of a node's task API: requests, the event stream of a task, and how tasks are shown.
//! May use: `admin_client`, `failure`.
//! Must not know: commands, flags other than the admin address.

mod client;
mod follow;
pub mod format;
mod progress;
mod sse;

pub use client::{TaskClient, decode, parse_id, response_json};
pub use follow::{TaskObserver, follow, verdict};
pub use progress::Progress;
