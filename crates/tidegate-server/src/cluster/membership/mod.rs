//! Membership: SWIM over sealed UDP packets, on a thread of its own with its own timers.
//! Uses the rules of membership in core. Must not know who joins how, nor anything that follows from membership:
//! it is a hint for people and for placement, and decides nothing.

mod codec;
mod counts;
mod driver;
mod effects;
mod error;
mod keyring;
mod member_id;
mod notes;
mod packet;
mod table;
mod thread;

pub use counts::PacketCounts;
pub use error::MembershipError;
pub use keyring::{KEY_BYTES, Keyring};
pub use notes::{DrainNote, Facts};
pub use table::{MemberState, MemberView};
pub use thread::{Membership, MembershipSettings};
