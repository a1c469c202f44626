use super::admission::{Accepted, Ask, Refused};
use super::rank::{Rank, RankLoad};
use super::sequence::{Finish, Plan, Sequence, SequenceId};
use super::words::Words;
use crate::chance::Chance;
use std::time::Duration;

/// Steps that one call of [`Engine::advance`] ends at most. What is left is due at once, so a machine that is
/// slower than its settings falls behind and is still answered.
const STEPS_MAX: usize = 256;

/// How large and how fast the engine is. All of it is for each rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EngineSettings {
    /// Data-parallel ranks.
    pub ranks: usize,
    /// KV blocks.
    pub kv_blocks: u64,
    /// Tokens in a block.
    pub block_size: u64,
    /// Sequences in the batch at most.
    pub max_running: usize,
    /// Sequences in the queue at most.
    pub max_waiting: usize,
    /// How fast prompts are read.
    pub prefill_tokens_per_s: f64,
    /// How long one token takes, for a sequence that is alone.
    pub decode_ms_per_token: f64,
    /// Mean of the lengths that are drawn.
    pub output_tokens_mean: u64,
    /// What is drawn follows from it.
    pub seed: u64,
}

/// A token of a sequence was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Of which one.
    pub id: SequenceId,
    /// How many there are now.
    pub decoded_tokens: u64,
}

/// The ranks, and the choice among them.
#[derive(Debug)]
pub struct Engine {
    settings: EngineSettings,
    ranks: Vec<Rank>,
    chance: Chance,
    next_id: u64,
    frozen_at: Option<Duration>,
}

// === impl EngineSettings ===

impl EngineSettings {
    /// Blocks that so many tokens take.
    #[must_use]
    pub fn blocks(&self, tokens: u64) -> u64 {
        tokens.div_ceil(self.block_size)
    }

    /// Tokens that all blocks of a rank hold.
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        self.kv_blocks.saturating_mul(self.block_size)
    }
}

// === impl Engine ===

impl Engine {
    /// An idle engine.
    #[must_use]
    pub fn new(settings: EngineSettings) -> Self {
        Self {
            settings,
            ranks: (0..settings.ranks).map(|_| Rank::new(settings)).collect(),
            chance: Chance::from_seed(settings.seed),
            next_id: 0,
            frozen_at: None,
        }
    }

    /// Takes a sequence, to run or to wait. What is drawn for it depends on the seed and on how many asked
    /// before, not on time.
    ///
    /// # Errors
    ///
    /// When there is no place for it, or never could be one.
    pub fn submit(&mut self, now: Duration, ask: Ask) -> Result<Accepted, Refused> {
        let drawn = self.chance.next();
        let prompt_tokens = ask.prompt_tokens.max(1);
        let (output_tokens, finish) = self.output(drawn, prompt_tokens, ask.max_tokens);
        let (needed_tokens, context_tokens) =
            (prompt_tokens.saturating_add(output_tokens), self.settings.context_tokens());
        if needed_tokens > context_tokens {
            return Err(Refused::TooLong { needed_tokens, context_tokens });
        }
        let rank = self.choose(ask.rank, needed_tokens)?;
        let id = SequenceId(self.next_id);
        self.next_id += 1;
        let sequence = Sequence {
            id,
            prompt_tokens,
            output_tokens,
            finish,
            prefilled_tokens: 0,
            decoded_tokens: 0,
            plan: Plan::Rest,
        };
        let scheduling = self.is_scheduling();
        self.ranks[rank].take(sequence, now, scheduling);
        let words = Words::new(drawn);
        Ok(Accepted { id, rank, prompt_tokens, output_tokens, finish, words })
    }

    /// Ends a sequence before its time and frees what it holds. One that has ended already is left as it is.
    pub fn cancel(&mut self, now: Duration, id: SequenceId) {
        let scheduling = self.is_scheduling();
        // It is in one of them at most, and the others find nothing to do.
        let _ = self.ranks.iter_mut().any(|rank| rank.cancel(id, now, scheduling));
    }

    /// Brings the engine to `now` and tells every token that was decoded on the way.
    pub fn advance(&mut self, now: Duration, mut tell: impl FnMut(Progress)) {
        if !self.is_scheduling() {
            return;
        }
        for rank in &mut self.ranks {
            for _ in 0..STEPS_MAX {
                match rank.step_ends() {
                    Some(ends) if ends <= now => rank.finish_step(ends, &mut tell),
                    _ => break,
                }
            }
        }
    }

    /// When there is something to [advance](Self::advance) to, unless something changes before.
    #[must_use]
    pub fn next_event(&self) -> Option<Duration> {
        let ends = self.ranks.iter().filter_map(Rank::step_ends).min();
        ends.filter(|_| self.is_scheduling())
    }

    /// Stops time for every rank, or lets it go on. What comes while it stands still can only wait.
    pub fn set_frozen(&mut self, now: Duration, frozen: bool) {
        match (self.frozen_at, frozen) {
            (None, true) => self.frozen_at = Some(now),
            (Some(since), false) => {
                self.frozen_at = None;
                for rank in &mut self.ranks {
                    rank.delay(now.saturating_sub(since));
                    rank.schedule(now);
                }
            }
            _ => {}
        }
    }

    /// Makes steps that begin from now on take so many times as long.
    pub fn set_slow_factor(&mut self, factor: f64) {
        for rank in &mut self.ranks {
            rank.slow_factor = factor;
        }
    }

    /// What each rank says of itself.
    #[must_use]
    pub fn loads(&self) -> Vec<RankLoad> {
        self.ranks.iter().map(Rank::load).collect()
    }

    fn is_scheduling(&self) -> bool {
        self.frozen_at.is_none()
    }

    /// What was asked for, or a length drawn evenly from 1 … 2·mean − 1 that fits beside the prompt.
    fn output(&self, drawn: u64, prompt_tokens: u64, asked: Option<u64>) -> (u64, Finish) {
        if let Some(tokens) = asked {
            return (tokens.max(1), Finish::Length);
        }
        let room = self.settings.context_tokens().saturating_sub(prompt_tokens).max(1);
        let range = (self.settings.output_tokens_mean * 2).saturating_sub(1).max(1);
        match 1 + drawn % range {
            tokens if tokens <= room => (tokens, Finish::Stop),
            _ => (room, Finish::Length),
        }
    }

    fn choose(&self, asked: Option<usize>, final_tokens: u64) -> Result<usize, Refused> {
        let scheduling = self.is_scheduling();
        let full = |index: usize| !self.ranks[index].has_place(final_tokens, scheduling);
        let chosen = match asked {
            Some(index) => Some(index).filter(|index| *index < self.ranks.len()),
            None => (0..self.ranks.len())
                .min_by_key(|index| (full(*index), self.ranks[*index].burden())),
        };
        let index = chosen.ok_or(Refused::NoSuchRank { ranks: self.ranks.len() })?;
        if full(index) {
            return Err(Refused::Full { retry_after: self.ranks[index].next_place() });
        }
        Ok(index)
    }
}
