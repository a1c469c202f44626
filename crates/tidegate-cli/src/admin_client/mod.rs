//! HTTP client of a running node's admin port, and the flags that name it and its token.
//! May use: `failure`, TLS of the server.
//! Must not know: commands, tasks, the terminal.

mod flags;
mod request;
mod tls_advice;
mod tls_flags;

pub use flags::{AdminFlag, TOKEN_VARIABLE, Token};
pub use request::{
    AdminRequest, AdminResponse, Connection, NoResponse, call, percent_encoded, runtime,
};
pub use tls_advice::tls_advice;
pub use tls_flags::TlsFlags;
