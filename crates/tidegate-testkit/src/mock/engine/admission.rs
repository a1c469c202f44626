use super::sequence::{Finish, SequenceId};
use super::text::GeneratedText;
use std::time::Duration;

/// Sequence that a request submits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceRequest {
    /// Tokens of the prompt; 0 counts as 1.
    pub prompt_tokens: u64,
    /// Tokens to decode; random without it.
    pub max_tokens: Option<u64>,
    /// Rank; the least loaded one without it.
    pub rank: Option<usize>,
}

/// Accepted sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Id, for [`Engine::cancel`](super::Engine::cancel).
    pub id: SequenceId,
    /// Rank of the sequence.
    pub rank: usize,
    /// Tokens of its prompt.
    pub prompt_tokens: u64,
    /// Tokens at its end.
    pub output_tokens: u64,
    /// Reason of its end.
    pub finish: Finish,
    /// Generated text.
    pub text: GeneratedText,
}

/// Refusal of a sequence. Only the random sequence has advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The batch and the queue are full.
    #[error("the batch and the queue are full")]
    Full {
        /// Time until the next sequence ends, at the present speed.
        retry_after: Duration,
    },
    /// The sequence would not fit on an idle rank.
    #[error("{needed_tokens} tokens are more than the {context_tokens} that a rank holds")]
    TooLong {
        /// Prompt and output.
        needed_tokens: u64,
        /// Tokens of all blocks of a rank.
        context_tokens: u64,
    },
    /// The rank does not exist.
    #[error("the ranks are 0 … {}", ranks - 1)]
    NoSuchRank {
        /// Number of ranks.
        ranks: usize,
    },
}
