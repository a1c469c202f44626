/// Id of a sequence, unique in its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub(super) u64);

/// Finish reason of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The text has ended.
    Stop,
    /// The requested length is reached.
    Length,
}

/// Progress of a sequence: one more token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Sequence.
    pub id: SequenceId,
    /// Decoded tokens so far.
    pub decoded_tokens: u64,
}

/// Part of a step for a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Nothing: admitted after the step began, or older prompts use the whole chunk.
    Rest,
    /// Prefill of this many prompt tokens.
    Prefill(u64),
    /// Decoding of one token.
    Decode,
}

/// Prompt and its output.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pub(super) id: SequenceId,
    pub(super) prompt_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) finish: Finish,
    pub(super) prefilled_tokens: u64,
    pub(super) decoded_tokens: u64,
    pub(super) plan: Plan,
}

// === impl Finish ===

impl Finish {
    /// Name in OpenAI's API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

// === impl Sequence ===

impl Sequence {
    /// Tokens in the KV cache.
    pub(super) fn cached_tokens(&self) -> u64 {
        self.prompt_tokens + self.decoded_tokens
    }

    /// Tokens in the KV cache at the end.
    pub(super) fn final_tokens(&self) -> u64 {
        self.prompt_tokens + self.output_tokens
    }

    pub(super) fn prefill_left(&self) -> u64 {
        self.prompt_tokens - self.prefilled_tokens
    }

    pub(super) fn is_finished(&self) -> bool {
        self.decoded_tokens == self.output_tokens
    }

    /// Ends the planned step. True if it decoded a token; the end of the prefill decodes the first.
    pub(super) fn finish_step(&mut self) -> bool {
        let decoded = match std::mem::replace(&mut self.plan, Plan::Rest) {
            Plan::Rest => false,
            Plan::Prefill(tokens) => {
                self.prefilled_tokens += tokens;
                self.prefill_left() == 0
            }
            Plan::Decode => true,
        };
        self.decoded_tokens += u64::from(decoded);
        decoded
    }
}
