use tidegate::rng::Rng;

/// Vocabulary; words include a leading space, as in real tokenizers.
const VOCABULARY: [&str; 32] = [
    " tide", " gate", " water", " moon", " river", " harbour", " the", " a", " slowly", " rises",
    " falls", " turns", " waits", " opens", " closes", " under", " over", " before", " after",
    " every", " quiet", " grey", " wide", " salt", " wind", " stone", " light", " boats", " carry",
    " hold", " and", " then",
];

/// Tokens per sentence.
const SENTENCE_TOKENS: u64 = 12;

/// Text of a sequence, computed from its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GeneratedText {
    seed: u64,
}

// === impl GeneratedText ===

impl GeneratedText {
    /// Text of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Seed of the text.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Token at this index.
    #[must_use]
    pub fn token(&self, index: u64) -> &'static str {
        if index % SENTENCE_TOKENS == SENTENCE_TOKENS - 1 {
            return ".";
        }
        let drawn = Rng::from_seed(self.seed.wrapping_add(index)).next_u64();
        let word = VOCABULARY[drawn as usize % VOCABULARY.len()];
        if index == 0 { word.trim_start() } else { word }
    }

    /// Text of the first tokens.
    #[must_use]
    pub fn text(&self, tokens: u64) -> String {
        (0..tokens).map(|index| self.token(index)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_depends_on_the_seed() {
        let text = GeneratedText::new(7);
        assert_eq!(text.text(40), GeneratedText::new(7).text(40));
        assert_ne!(text.text(40), GeneratedText::new(8).text(40));
        assert!(text.text(40).starts_with(&text.text(39)));
        assert!(!text.text(1).starts_with(' '));
        assert_eq!(text.text(12).matches('.').count(), 1);
    }
}
