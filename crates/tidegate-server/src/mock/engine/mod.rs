//! How an inference server spends time and KV blocks. No clock and no IO: `now` is an argument.
//!
//! Each data-parallel rank works in steps, as continuous batching does. A step decodes one token of every sequence
//! that has its prompt behind it, and prefills at most [`PREFILL_CHUNK_TOKENS`] of the prompts before it, oldest
//! first. Blocks are taken for a prompt when its sequence is admitted, grow with what is decoded, and are freed
//! at its end.
//!
//! Real servers promise more blocks than they have, and preempt when that goes wrong. Here a sequence is admitted
//! only when the blocks of its prompt and of all that it will decode fit beside what is promised already, so
//! nothing is ever preempted. What is reported is what is in use, not what is promised.

mod admission;
mod rank;
mod scheduler;
mod sequence;
mod words;

pub use admission::{Accepted, Ask, Refused};
pub use rank::{PREFILL_CHUNK_TOKENS, RankLoad};
pub use scheduler::{Engine, EngineSettings, Progress};
pub use sequence::{Finish, SequenceId};
pub use words::Words;
