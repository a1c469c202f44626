//! The five stages of the pipeline.
//!
//! May use the pipeline's items, counters and meters. Must not know how the stages are connected.

mod accept;
mod evaluate;
mod parse;
mod reassemble;
mod relay;
mod store;
mod store_backoff;

pub(crate) use accept::Accept;
pub(crate) use evaluate::Evaluate;
pub(crate) use parse::Parse;
pub(crate) use reassemble::Reassemble;
pub(crate) use relay::{Relay, Work};
pub(crate) use store::StoreStage;
pub(crate) use store_backoff::StoreBackoff;
