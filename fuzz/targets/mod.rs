//! Fuzz targets: for each parser that meets the outside, the properties that hold for any input.
//! Use the public interface of the crates, and hidden re-exports of parsers that have none.
//! Must not know who calls them: the fuzzer, or the test that replays the corpus.

mod files;
mod ingest;
mod load;
mod requests;
mod target;

pub use target::{TARGETS, Target};
