//! Busy-aware routing: which worker takes a request, and when to refuse because all of them are busy.

mod charge;
mod drain;
mod free_set;
mod latency;
mod ledger;
mod loads;
mod pick;
mod rank;
mod report;
mod sums;
mod thresholds;
mod view;

pub use charge::{Charge, ChargeRule};
pub use drain::DrainAdvisor;
pub use free_set::FreeSet;
pub use latency::{Answer, Latency};
pub use ledger::{OnSilence, RANKS_MAX, RankTold, Standing, Ticket, WorkerLedger};
pub use loads::Loads;
pub use pick::{Candidates, Pick};
pub use report::{KvUsage, LoadReport};
pub use thresholds::{BusyPreset, BusyThresholds, HighAsked, OutOfRange, Shares, Threshold};
pub use view::RankView;
