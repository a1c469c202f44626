//! What senders of usage records send: frames, lines, and the quantities in both.

pub mod frames;
pub mod lines;
pub mod quantity;
