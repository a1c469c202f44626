//! `tidegate drill --record`: writes the decisions of a running gateway to a file.
//! May use: `admin_client`, `shutdown`, the progress bar.
//! Must not know: scenarios, worlds, reports.

mod lines;
mod run;

pub use run::run;
