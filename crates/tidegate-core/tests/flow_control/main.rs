//! Tests of flow control: backpressure signals, outbox queues, turns of flows, progress,
//! retry budget and windows.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod ad37_backpressure;
mod fair_turns;
mod outbox_failures;
mod outbox_properties;
mod progress_properties;
mod retry_threads;
mod window_properties;
