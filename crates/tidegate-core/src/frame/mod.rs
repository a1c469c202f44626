//! Frames: batches of records and their answers, as bytes of a connection.
//!
//! A frame is a length, three bytes (version, kind, class) and a body in CBOR; `docs/protocol.md` defines every
//! byte. Bytes go in and frames come out, and the reverse.
//!
//! Uses `usage` for records, `sequence` for numbers, `signal` for backpressure and `admission` for classes. Must
//! not know sockets, stores or prices.
//!
//! ```
//! use tidegate_core::admission::MessageClass;
//! use tidegate_core::frame::{Batch, BatchBuilder, FrameLimits, Reassembler};
//! use tidegate_core::usage::{Names, UsageRecord};
//!
//! let limits = FrameLimits::default();
//! let mut builder = BatchBuilder::new(limits);
//! let record = UsageRecord {
//!     tenant: "acme".into(),
//!     meter: "tokens".into(),
//!     quantity: 12.into(),
//!     time_ns: 1_700_000_000_000_000_000,
//!     labels: "".into(),
//! };
//! builder.push(&record)?;
//! let sent = builder.finish(1, 0, MessageClass::Data);
//!
//! // The network splits it somewhere.
//! let (mut reassembler, mut names) = (Reassembler::new(limits), Names::default());
//! reassembler.push(sent.slice(..10));
//! assert_eq!(reassembler.next()?, None);
//! reassembler.push(sent.slice(10..));
//! let frame = reassembler.next()?.expect("all of it came");
//! assert_eq!(frame.peek_seq(), Some(1));
//! assert_eq!(Batch::decode(&frame, &limits, &mut names)?.records, [record]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ack;
mod batch;
mod cbor;
mod error;
mod hello;
mod kind;
mod limits;
mod raw;
mod reassembler;
mod reject;
mod reject_reason;
mod sender_name;
mod sender_token;
mod seq_ranges;
mod text;

pub use ack::Ack;
pub use batch::{Batch, BatchBuilder, BatchPushError};
pub use error::{FrameError, NameFault, RecordFault};
pub use hello::{Hello, Welcome};
pub use kind::{FrameKind, HEADER_BYTES, PROTOCOL_VERSION};
pub use limits::{FrameLimits, FrameLimitsError, LABELS_BYTES_MAX, NAME_BYTES_MAX};
pub use raw::RawFrame;
pub use reassembler::Reassembler;
pub use reject::Reject;
pub use reject_reason::RejectReason;
pub use sender_name::{SenderName, SenderNameError};
pub use sender_token::{SenderToken, SenderTokenError};
pub use seq_ranges::SeqRanges;
