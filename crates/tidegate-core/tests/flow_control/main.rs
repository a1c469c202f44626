//! Tests of flow control: backpressure signals, outbox queues, retry budget and windows.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod ad37_backpressure;
mod outbox_failures;
mod outbox_properties;
mod retry_threads;
mod window_properties;
