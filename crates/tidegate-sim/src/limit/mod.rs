//! One upstream behind gateways whose concurrency limit finds itself, beside other limit laws and an oracle.
//!
//! May use the limit of `tidegate-core`, the agenda and random draws. Must not know scenario files, commands
//! or files.
//!
//! Each gateway has a bounded queue and sends while its limit allows. Servers have slots, batch, collapse or
//! refuse; events change them while they run. [`run`] gives the figures of one law and one seed, [`compare`]
//! those of several laws as shares of an oracle that knows the best static limit.
//!
//! ```
//! use tidegate_sim::limit::{LimitLaw, find, run};
//!
//! // 20 slots at twice their capacity.
//! let scenario = find("hard_20").expect("it is built in");
//! let (elastic, oracle) = (run(&scenario, LimitLaw::Elastic, 1), run(&scenario, LimitLaw::Static, 1));
//! assert!(elastic.goodput_per_s > 0.9 * oracle.goodput_per_s);
//! ```

mod built_in;
mod compare;
mod gateway;
mod law;
mod measure;
mod rivals;
mod scenario;
mod server;
mod service;
mod simulation;

pub use built_in::{built_in, find};
pub use compare::{LimitComparison, LimitRow, compare};
pub use law::{LimitLaw, UnknownLimitLaw};
pub use measure::LimitFigures;
pub use scenario::{Judgement, LimitScenario, ServerChange, ServerModel};
pub use service::ServiceTime;
pub use simulation::run;
