//! Plain work, for drills: so much time and so many blocks, as the request says. It has places, blocks and a queue
//! of its own, beside those of completions.
//!
//! - [`Workplaces`]: who works, who waits and who is refused, as pure decisions over a time that is an argument.
//! - `Bench`: what turns them into time that passes.

mod bench;
mod places;
mod query;

pub(super) use bench::Bench;
pub use places::{WorkAsk, WorkId, WorkLoad, WorkRefused, WorkSettings, Workplaces};
pub(super) use query::asked_work;
