use super::sequence::{Finish, SequenceId};
use super::words::Words;
use std::time::Duration;

/// What a request asks of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Tokens of the prompt; none counts as one.
    pub prompt_tokens: u64,
    /// Tokens to decode; drawn when it is not said.
    pub max_tokens: Option<u64>,
    /// The rank that has to take it; the least loaded one when it is not said.
    pub rank: Option<usize>,
}

/// A sequence that the engine took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Its name, for [`Engine::cancel`](super::Engine::cancel).
    pub id: SequenceId,
    /// The rank that has it.
    pub rank: usize,
    /// Tokens of its prompt.
    pub prompt_tokens: u64,
    /// Tokens that it will have decoded at its end.
    pub output_tokens: u64,
    /// Why it will end there.
    pub finish: Finish,
    /// What it says.
    pub words: Words,
}

/// Why the engine did not take a sequence. Nothing but its stream of chance has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Every place to run and every place to wait is taken.
    #[error("every place is taken")]
    Full {
        /// When the next sequence ends, at the present speed.
        retry_after: Duration,
    },
    /// It could not run on an empty rank either.
    #[error("{needed_tokens} tokens are more than the {context_tokens} that a rank holds")]
    TooLong {
        /// Prompt and output.
        needed_tokens: u64,
        /// What all blocks of a rank hold.
        context_tokens: u64,
    },
    /// There is no such rank.
    #[error("the ranks are 0 … {}", ranks - 1)]
    NoSuchRank {
        /// How many there are.
        ranks: usize,
    },
}
