//! `tidegate token`: makes tokens for clients and operators.
//! May use: the digest of the configuration, the system's randomness.
//! Must not know: other commands, any server.

mod flags;
mod run;

pub use flags::{EXAMPLES, TokenCommand};
pub use run::run;
