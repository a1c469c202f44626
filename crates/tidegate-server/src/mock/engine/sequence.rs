/// The name of a sequence, unlike any other of its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub(super) u64);

/// Why a sequence ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It has said what it had to say.
    Stop,
    /// It has reached the length that was asked for.
    Length,
}

/// What a step does for a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Nothing: it was admitted after the step began, or prompts before it took all of it.
    Rest,
    /// This many tokens of its prompt.
    Prefill(u64),
    /// One token.
    Decode,
}

/// A prompt and what comes of it.
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
    /// As OpenAI names it.
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
    /// Tokens whose keys and values are in the cache, or are being put there.
    pub(super) fn cached_tokens(&self) -> u64 {
        self.prompt_tokens + self.decoded_tokens
    }

    /// Tokens that it will have in the cache at its end.
    pub(super) fn final_tokens(&self) -> u64 {
        self.prompt_tokens + self.output_tokens
    }

    pub(super) fn prefill_left(&self) -> u64 {
        self.prompt_tokens - self.prefilled_tokens
    }

    pub(super) fn is_finished(&self) -> bool {
        self.decoded_tokens == self.output_tokens
    }

    /// Ends the step that was planned. Says whether a token came of it: the end of the prompt gives the first.
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
