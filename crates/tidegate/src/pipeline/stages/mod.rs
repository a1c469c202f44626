//! The five stages, each a file.

mod accept;
mod evaluate;
mod parse;
mod patience;
mod reassemble;
mod relay;
mod store;

pub(crate) use accept::Accept;
pub(crate) use evaluate::Evaluate;
pub(crate) use parse::Parse;
pub(crate) use patience::Patience;
pub(crate) use reassemble::Reassemble;
pub(crate) use relay::{Relay, Work};
pub(crate) use store::Keeper;
