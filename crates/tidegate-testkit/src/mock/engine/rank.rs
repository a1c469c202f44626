use super::sequence::{Finish, Plan, Progress, Sequence, SequenceId};
use super::settings::EngineSettings;
use std::collections::VecDeque;
use std::time::Duration;

/// Limit of prompt tokens per step. Chunks keep a long prompt from blocking decoding; servers that favour latency
/// use 512.
pub const PREFILL_CHUNK_TOKENS: u64 = 512;

/// Slowdown of decoding in a full batch: 1.5 times. Decoding is bound by reading the weights, which a batch
/// shares, and the caches, which it does not.
const FULL_BATCH_SLOWDOWN: f64 = 0.5;

/// Shortest step: time must pass for the engine to advance.
const STEP_MIN: Duration = Duration::from_micros(1);

/// Load of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankLoad {
    /// KV blocks in use.
    pub active_blocks: u64,
    /// KV blocks in total.
    pub total_blocks: u64,
    /// Tokens per block.
    pub block_size: u64,
    /// Prompt tokens of running sequences that are still to be prefilled.
    pub prefill_tokens: u64,
    /// Tokens that the running sequences have in the cache.
    pub cached_tokens: u64,
    /// Sequences in the batch.
    pub running: u64,
    /// Sequences in the queue.
    pub waiting: u64,
    /// Prompt tokens prefilled so far.
    pub prompt_tokens_total: u64,
    /// Tokens decoded so far.
    pub output_tokens_total: u64,
    /// Sequences that ended with finish reason `stop`.
    pub stopped_total: u64,
    /// Sequences that ended with finish reason `length`.
    pub cut_total: u64,
}

/// Data-parallel rank: a queue, a batch and a KV cache.
#[derive(Debug)]
pub(super) struct Rank {
    settings: EngineSettings,
    waiting: VecDeque<Sequence>,
    /// In the order of admission.
    running: Vec<Sequence>,
    active_blocks: u64,
    /// Blocks that the running sequences will use at their ends.
    reserved_blocks: u64,
    step_ends: Option<Duration>,
    /// Factor of the duration of steps.
    pub(super) slow_factor: f64,
    /// Counters.
    totals: RankLoad,
}

// === impl RankLoad ===

impl RankLoad {
    /// Share of KV blocks in use, 0 … 1; 0 without blocks.
    #[must_use]
    pub fn usage(&self) -> f64 {
        if self.total_blocks == 0 {
            return 0.0;
        }
        self.active_blocks as f64 / self.total_blocks as f64
    }

    /// Sum of two loads.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            active_blocks: self.active_blocks + other.active_blocks,
            total_blocks: self.total_blocks + other.total_blocks,
            block_size: self.block_size.max(other.block_size),
            prefill_tokens: self.prefill_tokens + other.prefill_tokens,
            cached_tokens: self.cached_tokens + other.cached_tokens,
            running: self.running + other.running,
            waiting: self.waiting + other.waiting,
            prompt_tokens_total: self.prompt_tokens_total + other.prompt_tokens_total,
            output_tokens_total: self.output_tokens_total + other.output_tokens_total,
            stopped_total: self.stopped_total + other.stopped_total,
            cut_total: self.cut_total + other.cut_total,
        }
    }
}

// === impl Rank ===

impl Rank {
    pub(super) fn new(settings: EngineSettings) -> Self {
        Self {
            settings,
            waiting: VecDeque::new(),
            running: Vec::new(),
            active_blocks: 0,
            reserved_blocks: 0,
            step_ends: None,
            slow_factor: 1.0,
            totals: RankLoad::default(),
        }
    }

    pub(super) fn load(&self) -> RankLoad {
        RankLoad {
            active_blocks: self.active_blocks,
            total_blocks: self.settings.kv_blocks,
            block_size: self.settings.block_size,
            prefill_tokens: self.running.iter().map(Sequence::prefill_left).sum(),
            cached_tokens: self.running.iter().map(Sequence::cached_tokens).sum(),
            running: self.running.len() as u64,
            waiting: self.waiting.len() as u64,
            ..self.totals
        }
    }

    /// Order of ranks for the choice of the least loaded.
    pub(super) fn load_order(&self) -> (usize, u64) {
        (self.running.len() + self.waiting.len(), self.reserved_blocks)
    }

    /// True if a sequence with this many tokens can run or wait.
    pub(super) fn has_room(&self, final_tokens: u64, scheduling: bool) -> bool {
        let at_once = scheduling && self.waiting.is_empty() && self.can_run(final_tokens);
        at_once || self.waiting.len() < self.settings.max_waiting
    }

    /// Queues a sequence for which there is [room](Self::has_room).
    pub(super) fn take(&mut self, sequence: Sequence, now: Duration, scheduling: bool) {
        self.waiting.push_back(sequence);
        if scheduling {
            self.schedule(now);
        }
    }

    /// Cancels a sequence. False if this rank does not have it.
    pub(super) fn cancel(&mut self, id: SequenceId, now: Duration, scheduling: bool) -> bool {
        let waiting = self.waiting.len();
        self.waiting.retain(|sequence| sequence.id != id);
        let at = self.running.iter().position(|sequence| sequence.id == id);
        if let Some(at) = at {
            let sequence = self.running.remove(at);
            self.free(&sequence);
            if self.running.is_empty() {
                self.step_ends = None;
            }
        }
        if scheduling {
            self.schedule(now);
        }
        at.is_some() || self.waiting.len() < waiting
    }

    pub(super) fn step_ends(&self) -> Option<Duration> {
        self.step_ends
    }

    /// Delays the end of the step by the time that the engine was frozen.
    pub(super) fn delay(&mut self, by: Duration) {
        self.step_ends = self.step_ends.map(|ends| ends + by);
    }

    /// Ends the step at `now`, reports decoded tokens, and starts the next step.
    pub(super) fn finish_step(&mut self, now: Duration, on_progress: &mut impl FnMut(Progress)) {
        self.step_ends = None;
        let (settings, totals) = (&self.settings, &mut self.totals);
        for sequence in &mut self.running {
            if let Plan::Prefill(tokens) = sequence.plan {
                totals.prompt_tokens_total += tokens;
            }
            let blocks = settings.blocks(sequence.cached_tokens());
            if sequence.finish_step() {
                self.active_blocks += settings.blocks(sequence.cached_tokens()) - blocks;
                totals.output_tokens_total += 1;
                on_progress(Progress { id: sequence.id, decoded_tokens: sequence.decoded_tokens });
            }
        }
        self.remove_finished();
        self.schedule(now);
    }

    /// Time until the next sequence ends, at the speed of the present batch; 1 s without one.
    pub(super) fn next_free_slot(&self) -> Duration {
        let left = |sequence: &Sequence| sequence.output_tokens - sequence.decoded_tokens;
        let Some(tokens) = self.running.iter().map(left).min() else {
            return Duration::from_secs(1);
        };
        self.decode_time(self.running.len())
            .saturating_mul(u32::try_from(tokens).unwrap_or(u32::MAX))
    }

    fn remove_finished(&mut self) {
        let finished: Vec<_> =
            self.running.extract_if(.., |sequence| sequence.is_finished()).collect();
        for sequence in finished {
            self.free(&sequence);
            match sequence.finish {
                Finish::Stop => self.totals.stopped_total += 1,
                Finish::Length => self.totals.cut_total += 1,
            }
        }
    }

    fn free(&mut self, sequence: &Sequence) {
        self.active_blocks -= self.settings.blocks(sequence.cached_tokens());
        self.reserved_blocks -= self.settings.blocks(sequence.final_tokens());
    }

    fn can_run(&self, final_tokens: u64) -> bool {
        let reserved = self.reserved_blocks + self.settings.blocks(final_tokens);
        self.running.len() < self.settings.max_running && reserved <= self.settings.kv_blocks
    }

    /// Admits queued sequences in order, and starts a step if none runs.
    pub(super) fn schedule(&mut self, now: Duration) {
        while self.waiting.front().is_some_and(|next| self.can_run(next.final_tokens())) {
            let Some(next) = self.waiting.pop_front() else { break };
            self.active_blocks += self.settings.blocks(next.prompt_tokens);
            self.reserved_blocks += self.settings.blocks(next.final_tokens());
            self.running.push(next);
        }
        if self.step_ends.is_none() && !self.running.is_empty() {
            self.step_ends = Some(now + self.plan_step());
        }
    }

    /// Plans the step for each sequence; returns its duration.
    fn plan_step(&mut self) -> Duration {
        let (mut prefilling, mut decoding) = (0, 0);
        for sequence in &mut self.running {
            sequence.plan = match sequence.prefill_left() {
                0 => {
                    decoding += 1;
                    Plan::Decode
                }
                left => {
                    let tokens = left.min(PREFILL_CHUNK_TOKENS - prefilling);
                    prefilling += tokens;
                    if tokens == 0 { Plan::Rest } else { Plan::Prefill(tokens) }
                }
            };
        }
        let prefill_s = prefilling as f64 / self.settings.prefill_tokens_per_s;
        let prefill = Duration::from_secs_f64(prefill_s * self.slow_factor);
        (prefill + self.decode_time(decoding)).max(STEP_MIN)
    }

    /// Duration of decoding one token of each sequence.
    fn decode_time(&self, sequences: usize) -> Duration {
        if sequences == 0 {
            return Duration::ZERO;
        }
        let fill = (sequences - 1) as f64 / self.settings.max_running as f64;
        let millis = self.settings.decode_ms_per_token * (1.0 + FULL_BATCH_SLOWDOWN * fill);
        Duration::from_secs_f64(millis * self.slow_factor / 1000.0)
    }
}
