//! Windows of sequence numbers: each numbered batch of a sender counts once, however often it arrives.
//!
//! Uses nothing of this crate. Must not know senders, stores or what a batch holds.

mod seq_window;

pub use seq_window::{SEQ_RESTART_MAX, SEQ_WINDOW, SeqStatus, SeqWindow, SeqWindowError};
