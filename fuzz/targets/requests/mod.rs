//! What clients and upstreams put into heads and bodies.

pub mod execute;
pub mod head;
pub mod model_scan;
pub mod path;
pub mod priority;
pub mod response;
pub mod retry_after;
pub mod submission;
pub mod timeout;
