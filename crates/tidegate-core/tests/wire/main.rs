//! Tests of the wire formats: frames, line protocol and their documentation.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod decision_log;
mod frame_failures;
mod frame_properties;
mod line_properties;
mod line_protocol;
mod protocol_document;
