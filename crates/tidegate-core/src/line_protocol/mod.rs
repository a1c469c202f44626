//! Influx line protocol, as sent by telegraf, scripts and `nc`, to usage records and back.
//!
//! `docs/protocol.md` defines the mapping of lines to records. Bytes go in, split anywhere; blocks of complete
//! lines come out; a parser makes records of them.
//!
//! Uses `usage` for records and the name limits and tokens of `frame`. Must not know sockets, clocks or stores.
//!
//! ```
//! use tidegate_core::line_protocol::{LineConfig, LineCutter, LineParser};
//! use tidegate_core::usage::Names;
//!
//! let mut cutter = LineCutter::new(LineCutter::LINE_BYTES_MAX);
//! let (mut parser, mut names) = (LineParser::new(LineConfig::default()), Names::default());
//! let (mut records, now_ns) = (Vec::new(), 1_700_000_000_000_000_000);
//!
//! cutter.push("tokens,tenant=acme,model=small input=12i,out".into());
//! assert_eq!(cutter.next()?, None, "the line has no end yet");
//! cutter.push("put=3.50 1700000000000000001\n".into());
//! while let Some(block) = cutter.next()? {
//!     let mut wrong = |error| eprintln!("{error}");
//!     parser.parse_block(&block, now_ns, &mut names, &mut records, &mut wrong);
//! }
//!
//! assert_eq!(&*records[0].meter, "tokens.input");
//! assert_eq!(records[1].quantity.to_string(), "3.50");
//! assert_eq!((&*records[1].tenant, &*records[1].labels), ("acme", "model=small"));
//! # Ok::<(), tidegate_core::line_protocol::LineError>(())
//! ```

mod auth;
mod config;
mod cutter;
mod error;
mod newline;
mod parser;
mod tags;
mod token;
mod value;
mod writer;

pub use auth::auth_line;
pub use config::{LineConfig, LineConfigError, Precision};
pub use cutter::LineCutter;
pub use error::{LineError, LineFault};
pub use parser::{BlockOutcome, LineOutcome, LineParser};
pub use writer::{LineWriteError, write_line};
