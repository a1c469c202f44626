//! Tasks of a running node: submitted, looked at, followed, stopped.

mod cancel;
mod client;
mod follow;
mod list;
mod logs;
mod progress;
mod sse;
mod status;
mod submit;
mod words;

pub use cancel::run as cancel;
pub use list::run as list;
pub use logs::run as logs;
pub use status::run as status;
pub use submit::run as submit;
