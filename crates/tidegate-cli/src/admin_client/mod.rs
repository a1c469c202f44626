//! HTTP client of a running node's admin port, and the flags that name it and its token.
//! May use: `failure`.
//! Must not know: commands, tasks, the terminal.

mod flags;
mod request;

pub use flags::AdminFlag;
pub use request::{
    AdminRequest, AdminResponse, Connection, NoResponse, call, percent_encoded, runtime,
};
