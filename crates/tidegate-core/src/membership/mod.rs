//! Rules of cluster membership: generations, names, replayed packets and timers of a stalled observer.
//!
//! Uses nothing of this crate. Must not know packets, keys, sockets or the gossip protocol.

mod generation;
mod name_claim;
mod replay_window;
mod role;
mod timer_queue;

pub use generation::next_generation;
pub use name_claim::{NAME_CONTEST_MAX, NameClaim};
pub use replay_window::{REPLAY_WINDOW, ReplayWindow};
pub use role::{MemberRole, UnknownRole};
pub use timer_queue::{REARMS_MAX, TimerQueue};
