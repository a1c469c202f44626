//! `tidegate mock`: a synthetic inference server.
//! May use: the mock of the testkit, `banner`, `shutdown`.
//! Must not know: other commands, the server.

mod flags;
mod run;

pub use flags::{EXAMPLES, MockFlags};
pub use run::run;
