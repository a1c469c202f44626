use crate::random::Draw;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tidegate_core::rng::Rng;

/// The service time of a request at an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Service {
    /// Always as long.
    Fixed {
        /// Milliseconds.
        ms: f64,
    },
    /// Exponentially distributed.
    Exponential {
        /// The mean, in milliseconds.
        ms: f64,
    },
    /// Mostly short, now and then long.
    Bimodal {
        /// The time of most requests, in milliseconds.
        ms: f64,
        /// The time of the others, in milliseconds.
        slow_ms: f64,
        /// The share of those, 0 … 1.
        slow_share: f64,
    },
    /// As inference does: a prompt is read, an answer is decoded token by token, and both fill the KV cache for as
    /// long. Tokens are exponentially distributed.
    Kv {
        /// Mean tokens of a prompt.
        prompt_tokens: f64,
        /// Mean tokens of an answer.
        output_tokens: f64,
        /// Tokens of prompts read a second.
        prefill_tokens_per_s: f64,
        /// Milliseconds for a token of an answer.
        decode_ms_per_token: f64,
        /// Tokens in a block of the cache.
        block_tokens: f64,
    },
}

/// The work of one request at an upstream: a slot for a time, and blocks of its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// The time.
    pub time: Duration,
    /// Blocks of the KV cache for that long.
    pub blocks: u32,
}

// === impl Service ===

impl Service {
    /// The work of the next request.
    pub(crate) fn draw(&self, rng: &mut Rng) -> Work {
        let (ms, blocks) = match *self {
            Self::Fixed { ms } => (ms, 0),
            Self::Exponential { ms } => (rng.exponential(ms), 0),
            Self::Bimodal { ms, slow_ms, slow_share } => {
                (if rng.uniform() <= slow_share { slow_ms } else { ms }, 0)
            }
            Self::Kv {
                prompt_tokens,
                output_tokens,
                prefill_tokens_per_s,
                decode_ms_per_token,
                block_tokens,
            } => {
                let prompt = rng.exponential(prompt_tokens).ceil().max(1.0);
                let output = rng.exponential(output_tokens).ceil().max(1.0);
                let ms = prompt / prefill_tokens_per_s * 1e3 + output * decode_ms_per_token;
                (ms, ((prompt + output) / block_tokens).ceil() as u32)
            }
        };
        // To the microsecond: what is written into a request's address is what is simulated.
        Work { time: Duration::from_micros((ms * 1e3).round() as u64), blocks }
    }

    /// The mean time, in seconds.
    #[must_use]
    pub fn mean_s(&self) -> f64 {
        let ms = match *self {
            Self::Fixed { ms } | Self::Exponential { ms } => ms,
            Self::Bimodal { ms, slow_ms, slow_share } => {
                ms * (1.0 - slow_share) + slow_ms * slow_share
            }
            Self::Kv {
                prompt_tokens,
                output_tokens,
                prefill_tokens_per_s,
                decode_ms_per_token,
                ..
            } => prompt_tokens / prefill_tokens_per_s * 1e3 + output_tokens * decode_ms_per_token,
        };
        ms / 1e3
    }

    /// The mean of blocks × seconds that a request takes; 0 where no cache is used.
    #[must_use]
    pub fn mean_block_s(&self) -> f64 {
        let Self::Kv {
            prompt_tokens,
            output_tokens,
            prefill_tokens_per_s,
            decode_ms_per_token,
            block_tokens,
        } = *self
        else {
            return 0.0;
        };
        // E[(P + O)(aP + bO)] with P and O exponential: E[P²] = 2·E[P]². Half a block is the mean of rounding up.
        let (a, b) = (1.0 / prefill_tokens_per_s, decode_ms_per_token / 1e3);
        let token_s = 2.0 * a * prompt_tokens * prompt_tokens
            + (a + b) * prompt_tokens * output_tokens
            + 2.0 * b * output_tokens * output_tokens;
        token_s / block_tokens + self.mean_s() / 2.0
    }
}
