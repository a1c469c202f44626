use super::admission::{Accepted, Refused, SequenceRequest};
use super::rank::{Rank, RankLoad};
use super::sequence::{Finish, Plan, Progress, Sequence, SequenceId};
use super::settings::EngineSettings;
use super::text::GeneratedText;
use std::time::Duration;
use tidegate::rng::Rng;

/// Limit of steps per call of [`Engine::advance`]. A machine that is slower than the settings falls behind, but
/// the call returns.
const STEPS_MAX: usize = 256;

/// Engine: ranks, and the choice among them.
#[derive(Debug)]
pub struct Engine {
    settings: EngineSettings,
    ranks: Vec<Rank>,
    rng: Rng,
    next_id: u64,
    frozen_at: Option<Duration>,
}

// === impl Engine ===

impl Engine {
    /// Makes an idle engine.
    #[must_use]
    pub fn new(settings: EngineSettings) -> Self {
        Self {
            settings,
            ranks: (0..settings.ranks).map(|_| Rank::new(settings)).collect(),
            rng: Rng::from_seed(settings.seed),
            next_id: 0,
            frozen_at: None,
        }
    }

    /// Accepts a sequence to run or to wait. Its random values depend on the seed and the number of submissions,
    /// not on time.
    ///
    /// # Errors
    ///
    /// When batch and queue are full, or the sequence can never fit.
    pub fn submit(&mut self, now: Duration, request: SequenceRequest) -> Result<Accepted, Refused> {
        let drawn = self.rng.next_u64();
        let prompt_tokens = request.prompt_tokens.max(1);
        let (output_tokens, finish) = self.output(drawn, prompt_tokens, request.max_tokens);
        let (needed_tokens, context_tokens) =
            (prompt_tokens.saturating_add(output_tokens), self.settings.context_tokens());
        if needed_tokens > context_tokens {
            return Err(Refused::TooLong { needed_tokens, context_tokens });
        }
        let rank = self.choose(request.rank, needed_tokens)?;
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
        let text = GeneratedText::new(drawn);
        Ok(Accepted { id, rank, prompt_tokens, output_tokens, finish, text })
    }

    /// Cancels a sequence and frees its blocks; no effect after its end.
    pub fn cancel(&mut self, now: Duration, id: SequenceId) {
        let scheduling = self.is_scheduling();
        // At most one rank has it.
        let _ = self.ranks.iter_mut().any(|rank| rank.cancel(id, now, scheduling));
    }

    /// Advances the engine to `now` and reports every decoded token.
    pub fn advance(&mut self, now: Duration, mut on_progress: impl FnMut(Progress)) {
        if !self.is_scheduling() {
            return;
        }
        for rank in &mut self.ranks {
            for _ in 0..STEPS_MAX {
                match rank.step_ends() {
                    Some(ends) if ends <= now => rank.finish_step(ends, &mut on_progress),
                    _ => break,
                }
            }
        }
    }

    /// Time of the next event to [advance](Self::advance) to.
    #[must_use]
    pub fn next_event(&self) -> Option<Duration> {
        let ends = self.ranks.iter().filter_map(Rank::step_ends).min();
        ends.filter(|_| self.is_scheduling())
    }

    /// Freezes or unfreezes all ranks. Sequences that arrive meanwhile wait.
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

    /// Sets the duration factor of steps that start from now on.
    pub fn set_slow_factor(&mut self, factor: f64) {
        for rank in &mut self.ranks {
            rank.slow_factor = factor;
        }
    }

    /// Loads of all ranks.
    #[must_use]
    pub fn loads(&self) -> Vec<RankLoad> {
        self.ranks.iter().map(Rank::load).collect()
    }

    fn is_scheduling(&self) -> bool {
        self.frozen_at.is_none()
    }

    /// Output length: as requested, or uniform in 1 … 2·mean − 1 within the context.
    fn output(&self, drawn: u64, prompt_tokens: u64, requested: Option<u64>) -> (u64, Finish) {
        if let Some(tokens) = requested {
            return (tokens.max(1), Finish::Length);
        }
        let room = self.settings.context_tokens().saturating_sub(prompt_tokens).max(1);
        let range = (self.settings.output_tokens_mean * 2).saturating_sub(1).max(1);
        match 1 + drawn % range {
            tokens if tokens <= room => (tokens, Finish::Stop),
            _ => (room, Finish::Length),
        }
    }

    fn choose(&self, requested: Option<usize>, final_tokens: u64) -> Result<usize, Refused> {
        let scheduling = self.is_scheduling();
        let full = |index: usize| !self.ranks[index].has_room(final_tokens, scheduling);
        let chosen = match requested {
            Some(index) => Some(index).filter(|index| *index < self.ranks.len()),
            None => (0..self.ranks.len())
                .min_by_key(|index| (full(*index), self.ranks[*index].load_order())),
        };
        let index = chosen.ok_or(Refused::NoSuchRank { ranks: self.ranks.len() })?;
        if full(index) {
            return Err(Refused::Full { retry_after: self.ranks[index].next_free_slot() });
        }
        Ok(index)
    }
}
