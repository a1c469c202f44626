//! Output of all commands: tables, printable text, JSON.
//! May use: `failure`.
//! Must not know: commands, the admin port.

mod print;
mod table;

pub use print::{print, report_json};
pub use table::{aligned, printable};
