use crate::chance::Chance;

/// What the mock can say. The space belongs to the word, as in the vocabularies of real models.
const VOCABULARY: [&str; 32] = [
    " tide", " gate", " water", " moon", " river", " harbour", " the", " a", " slowly", " rises",
    " falls", " turns", " waits", " opens", " closes", " under", " over", " before", " after",
    " every", " quiet", " grey", " wide", " salt", " wind", " stone", " light", " boats", " carry",
    " hold", " and", " then",
];

/// Every so many tokens a sentence ends.
const SENTENCE_TOKENS: u64 = 12;

/// The text of one sequence: any token of it, at any time, without having to keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    seed: u64,
}

// === impl Words ===

impl Words {
    /// The text that belongs to a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed, which tells one text from another.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The token at this place, from 0.
    #[must_use]
    pub fn token(&self, index: u64) -> &'static str {
        if index % SENTENCE_TOKENS == SENTENCE_TOKENS - 1 {
            return ".";
        }
        let drawn = Chance::from_seed(self.seed.wrapping_add(index)).next();
        let word = VOCABULARY[drawn as usize % VOCABULARY.len()];
        if index == 0 { word.trim_start() } else { word }
    }

    /// The first tokens, joined.
    #[must_use]
    pub fn text(&self, tokens: u64) -> String {
        (0..tokens).map(|index| self.token(index)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_seed_s_and_its_tokens_joined() {
        let words = Words::new(7);
        assert_eq!(words.text(40), Words::new(7).text(40));
        assert_ne!(words.text(40), Words::new(8).text(40));
        assert!(words.text(40).starts_with(&words.text(39)));
        assert!(!words.text(1).starts_with(' '));
        assert_eq!(words.text(12).matches('.').count(), 1);
    }
}
