//! `tidegate tariff`: checks a file of tariffs and prices examples.
//! May use: the tariffs of the library.
//! Must not know: other commands, any server.

mod example;
mod flags;
mod run;
mod summary;

pub use flags::{EXAMPLES, TariffCommand};
pub use run::run;
