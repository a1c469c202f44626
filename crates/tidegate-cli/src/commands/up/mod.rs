//! `tidegate up`: the gateway with ingestion and tasks in one process.
//! May use: the server, `banner`, `config_loader`, `shutdown`, the mock of the testkit.
//! Must not know: other commands.

mod banner;
mod flags;
mod run;

pub use flags::{EXAMPLES, UpFlags};
pub use run::run;
