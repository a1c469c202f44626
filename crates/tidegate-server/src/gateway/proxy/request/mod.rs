//! Requests on their way to an upstream: heads, bodies, and the model that a body names.
//! Uses HTTP, settings, and the load header of upstreams.
//! Must not know which upstream is chosen, nor its response.

pub mod deadline;
mod forwarded;
mod head;
mod hop_by_hop;
mod intake;
mod model_scan;

pub use forwarded::{ForwardedCache, Hop};
pub use head::OutgoingHead;
pub use hop_by_hop::{Coding, strip};
pub use intake::Intake;
pub use model_scan::{ModelScan, Scanned};
