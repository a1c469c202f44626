//! Credit accounting of a channel: the balance in one word, the gate that takes and returns credits, and the queue
//! of senders that wait for them.
//!
//! May use the channel's primitives and weights. Must not know messages, or how they are stored.

pub(super) mod acquire;
pub(super) mod credits;
pub(super) mod gate;
mod wait_queue;
pub(super) mod waiters;
mod wakes;
