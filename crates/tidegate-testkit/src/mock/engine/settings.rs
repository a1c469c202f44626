/// Size and speed of each rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineSettings {
    /// Data-parallel ranks.
    pub ranks: usize,
    /// KV blocks.
    pub kv_blocks: u64,
    /// Tokens per block.
    pub block_size: u64,
    /// Limit of running sequences.
    pub max_running: usize,
    /// Limit of queued sequences.
    pub max_waiting: usize,
    /// Prefill speed.
    pub prefill_tokens_per_s: f64,
    /// Decode time per token of a single sequence.
    pub decode_ms_per_token: f64,
    /// Mean of random output lengths.
    pub output_tokens_mean: u64,
    /// Seed of the random numbers.
    pub seed: u64,
}

// === impl EngineSettings ===

impl EngineSettings {
    /// Blocks of this many tokens.
    #[must_use]
    pub fn blocks(&self, tokens: u64) -> u64 {
        tokens.div_ceil(self.block_size)
    }

    /// Context length: tokens of all blocks of a rank.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.kv_blocks.saturating_mul(self.block_size)
    }
}
