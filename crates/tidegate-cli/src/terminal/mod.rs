//! Output of all commands: tables, printable text, JSON.
//! May use: `failure`.
//! Must not know: commands, the admin port.

mod print;
mod shell_path;
mod table;

pub use print::{print, report_json};
pub use shell_path::shell_path;
pub use table::{aligned, printable};
