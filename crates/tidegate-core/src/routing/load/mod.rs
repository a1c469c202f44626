//! The load of one upstream, by rank: what it reports, and what was sent to it since.
//!
//! May use the thresholds. Must not know other upstreams, or how one is chosen.

mod account;
mod charge;
mod expected_wait;
mod rank;
mod report;
mod sums;
mod upstream_account;
mod view;

pub use account::{ChargeTicket, LoadAccount, OnSilence, RANKS_MAX, RankReport, Standing};
pub use charge::{Charge, ChargeRule};
pub use expected_wait::ExpectedWait;
pub use report::{KvUsage, LoadReport};
pub use upstream_account::{UpstreamAccount, UpstreamLimit, UpstreamTicket};
pub use view::RankView;
