//! Model of an inference server: how it spends time and KV blocks. No clock and no IO: `now` is an argument.
//! May use: the library's generator of random numbers.
//! Must not know: tokio, HTTP, faults.
//!
//! Each data-parallel rank works in steps, as continuous batching does. A step decodes one token of every sequence
//! whose prompt is prefilled, and prefills at most [`PREFILL_CHUNK_TOKENS`] of other prompts, oldest first. An
//! admitted sequence holds the blocks of its prompt; they grow with decoded tokens and are freed at its end.
//!
//! Real servers overcommit blocks and preempt when they run out. Here a sequence is admitted only if the blocks of
//! its prompt and its whole output fit beside what is reserved, so nothing is preempted. Reports show blocks in
//! use, not reserved ones.

mod admission;
mod rank;
mod scheduler;
mod sequence;
mod settings;
mod text;

pub use admission::{Accepted, Refused, SequenceRequest};
pub use rank::{PREFILL_CHUNK_TOKENS, RankLoad};
pub use scheduler::Engine;
pub use sequence::{Finish, Progress, SequenceId};
pub use settings::EngineSettings;
pub use text::GeneratedText;
