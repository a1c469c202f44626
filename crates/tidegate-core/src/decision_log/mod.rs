//! The format of the decision log: JSON lines that say what a gateway decided of each request.
//!
//! The first line is a [`Header`] with the limits in force, then comes a [`DecisionRecord`] for each request whose
//! end is known, between them the number of records that were lost, and last a [`Footer`]. May use `admission`.
//! Must not know who writes and who reads: a file, a socket or a test.

mod encoding;
mod error;
mod header;
mod in_flight;
mod line;

pub use error::FormatError;
pub use header::Header;
pub use in_flight::InFlight;
pub use line::{DecisionRecord, Footer, Line};

/// The name of the format, in the first line.
pub const FORMAT: &str = "tidegate-decisions";

/// The version of the format that is written and read.
pub const VERSION: u32 = 1;

/// The longest line in bytes: a client's name has at most 64 letters.
pub const LINE_BYTES_MAX: usize = 4096;
