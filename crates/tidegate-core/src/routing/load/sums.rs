/// Some requests added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub requests: u64,
    pub blocks: u64,
    pub tokens: u64,
    /// Blocks as they were guessed from the request alone.
    pub guessed: u64,
}

// === impl Sums ===

impl Sums {
    pub fn add(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.guessed = self.guessed.saturating_add(other.guessed);
    }

    pub fn subtract(&mut self, other: Self) {
        self.requests = self.requests.saturating_sub(other.requests);
        self.blocks = self.blocks.saturating_sub(other.blocks);
        self.tokens = self.tokens.saturating_sub(other.tokens);
        self.guessed = self.guessed.saturating_sub(other.guessed);
    }
}
