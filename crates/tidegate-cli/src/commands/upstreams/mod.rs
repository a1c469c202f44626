//! `tidegate upstreams`: shows the upstreams of a running gateway, their limits, and the queues in front of them.
//! May use: `admin_client`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, UpstreamsFlags};
pub use run::run;
