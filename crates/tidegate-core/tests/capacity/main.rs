//! Tests of capacity: slots, ledger and dispatcher, by failure, by property and by exhaustive search.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod dispatcher;
mod dispatcher_properties;
mod ledger;
mod model;
mod slots_failures;
mod slots_properties;
