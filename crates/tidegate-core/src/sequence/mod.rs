//! Which of a sender's numbered batches have been seen: what makes a repeat harmless.

mod seq_window;

pub use seq_window::{NotASeqWindow, SEQ_WINDOW, Seen, SeqWindow};
