//! The gateway as a running thing: its threads, its connections, and its end.
//!
//! One thread accepts, one thread a core serves clients, and one answers the control plane on its own port,
//! so that an operator is heard whatever the others have to do.

mod accept;
mod activity;
mod client_io;
mod connection;
mod control_thread;
mod shared;
mod start;
mod warden;
mod worker;

pub use activity::{Activity, Busy, Order};
pub use shared::{Phase, Shared, ThreadContext};
pub use start::{Beside, Drained, Gateway, GatewayError};
