//! The engine against what must always hold, in virtual time.

use proptest::prelude::*;
use std::collections::HashMap;
use std::time::Duration;
use tidegate_testkit::mock::engine::{
    Accepted, Engine, EngineSettings, PREFILL_CHUNK_TOKENS, Refused, SequenceId, SequenceRequest,
};

/// Event of an engine.
#[derive(Clone, Debug)]
enum Act {
    Submit(SequenceRequest),
    Advance(u64),
    /// The sequence that was accepted so many before the last.
    Cancel(usize),
    Freeze(bool),
}

/// An engine, and what a patient observer knows of it.
struct Observed {
    engine: Engine,
    settings: EngineSettings,
    now: Duration,
    accepted: Vec<Accepted>,
    decoded: HashMap<SequenceId, u64>,
    /// In which order first tokens came, by rank.
    first: HashMap<usize, Vec<SequenceId>>,
}

fn settings() -> EngineSettings {
    EngineSettings {
        ranks: 2,
        kv_blocks: 24,
        block_size: 4,
        max_running: 3,
        max_waiting: 4,
        prefill_tokens_per_s: 1000.0,
        decode_ms_per_token: 10.0,
        output_tokens_mean: 20,
        seed: 1,
    }
}

fn ask(prompt_tokens: u64, max_tokens: u64) -> SequenceRequest {
    SequenceRequest { prompt_tokens, max_tokens: Some(max_tokens), rank: None }
}

fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Observed {
    fn new(settings: EngineSettings) -> Self {
        Self {
            engine: Engine::new(settings),
            settings,
            now: Duration::ZERO,
            accepted: Vec::new(),
            decoded: HashMap::new(),
            first: HashMap::new(),
        }
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Submit(ask) => {
                self.accepted.extend(self.engine.submit(self.now, ask).ok());
            }
            Act::Advance(ms) => self.advance(millis(ms)),
            Act::Cancel(back) => {
                let index = self.accepted.len().checked_sub(back + 1);
                if let Some(accepted) = index.map(|index| self.accepted[index]) {
                    self.engine.cancel(self.now, accepted.id);
                }
            }
            Act::Freeze(frozen) => self.engine.set_frozen(self.now, frozen),
        }
        self.check();
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        let (accepted, decoded, first) = (&self.accepted, &mut self.decoded, &mut self.first);
        while self.engine.next_event().is_some_and(|at| at <= self.now) {
            self.engine.advance(self.now, |progress| {
                let before = decoded.insert(progress.id, progress.decoded_tokens).unwrap_or(0);
                assert_eq!(progress.decoded_tokens, before + 1, "one token after the other");
                let of = accepted.iter().find(|accepted| accepted.id == progress.id).unwrap();
                assert!(progress.decoded_tokens <= of.output_tokens);
                if before == 0 {
                    first.entry(of.rank).or_default().push(progress.id);
                }
            });
        }
    }

    fn check(&self) {
        let settings = &self.settings;
        for load in self.engine.loads() {
            assert!(load.active_blocks <= load.total_blocks, "{load:?}");
            assert!(load.running <= settings.max_running as u64, "{load:?}");
            assert!(load.waiting <= settings.max_waiting as u64, "{load:?}");
            assert!(load.active_blocks >= settings.blocks(load.cached_tokens), "{load:?}");
            // No sequence has more than one block that is not full.
            assert!(load.active_blocks <= load.cached_tokens / settings.block_size + load.running);
        }
        for ids in self.first.values() {
            assert!(ids.is_sorted(), "first come, first served: {ids:?}");
        }
    }

    fn is_empty(&self) -> bool {
        let held = |load: &tidegate_testkit::mock::engine::RankLoad| {
            load.active_blocks
                + load.running
                + load.waiting
                + load.prefill_tokens
                + load.cached_tokens
        };
        self.engine.next_event().is_none() && self.engine.loads().iter().all(|load| held(load) == 0)
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let submit = (1..120u64, prop::option::of(1..60u64), prop::option::of(0..3usize)).prop_map(
        |(prompt_tokens, max_tokens, rank)| SequenceRequest { prompt_tokens, max_tokens, rank },
    );
    let act = prop_oneof![
        5 => submit.prop_map(Act::Submit),
        5 => (0..300u64).prop_map(Act::Advance),
        2 => (0..6usize).prop_map(Act::Cancel),
        1 => any::<bool>().prop_map(Act::Freeze),
    ];
    prop::collection::vec(act, 0..80)
}

proptest! {
    #[test]
    fn bounds_hold_and_everything_ends_with_nothing_held(acts in acts(), cancel in any::<bool>()) {
        let mut observed = Observed::new(settings());
        for act in &acts {
            observed.act(act);
        }
        observed.act(&Act::Freeze(false));
        if cancel {
            for back in 0..observed.accepted.len() {
                observed.act(&Act::Cancel(back));
            }
        } else {
            observed.act(&Act::Advance(3_600_000));
        }
        prop_assert!(observed.is_empty());
    }

    #[test]
    fn the_same_acts_give_the_same_engine(acts in acts()) {
        let run = || {
            let mut observed = Observed::new(settings());
            acts.iter().for_each(|act| observed.act(act));
            (observed.accepted, observed.decoded, observed.engine.loads())
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn it_does_not_matter_how_often_one_looks(acts in acts(), pieces in 2..9u32) {
        let run = |pieces: u32| {
            let mut observed = Observed::new(settings());
            for act in &acts {
                if let Act::Advance(ms) = act {
                    (0..pieces).for_each(|_| observed.advance(millis(*ms)));
                } else {
                    observed.act(act);
                }
            }
            (observed.decoded, observed.first, observed.engine.loads())
        };
        let stretched = |acts: &[Act]| {
            let mut observed = Observed::new(settings());
            for act in acts {
                match act {
                    Act::Advance(ms) => observed.advance(millis(*ms) * pieces),
                    other => observed.act(other),
                }
            }
            (observed.decoded, observed.first, observed.engine.loads())
        };
        prop_assert_eq!(run(pieces), stretched(&acts));
    }
}

#[test]
fn a_lone_sequence_takes_the_time_that_its_speeds_say() {
    let mut observed = Observed::new(settings());
    observed.act(&Act::Submit(ask(50, 3)));
    let first = observed.engine.next_event().unwrap();
    assert_eq!(first, millis(50), "50 tokens at 1000 a second, and the first token with them");
    observed.act(&Act::Advance(70));
    assert!(observed.is_empty());
    let mut late = Observed::new(settings());
    late.act(&Act::Submit(ask(50, 3)));
    late.act(&Act::Advance(69));
    assert_eq!(late.engine.loads()[0].running, 1);
}

#[test]
fn a_full_batch_decodes_slower_and_a_long_prompt_comes_in_chunks() {
    let wide = EngineSettings { kv_blocks: 4096, max_running: 2, ranks: 1, ..settings() };
    let mut observed = Observed::new(wide);
    observed.act(&Act::Submit(ask(PREFILL_CHUNK_TOKENS + 1, 9)));
    assert_eq!(observed.engine.next_event(), Some(millis(512)));
    observed.act(&Act::Submit(ask(1, 9)));
    observed.act(&Act::Advance(512));
    assert_eq!(observed.engine.next_event(), Some(millis(514)), "one token of either prompt");
    observed.act(&Act::Advance(2));
    // Two of two: half of the slowdown of a full batch, 10 ms · (1 + 0.5 · 1/2).
    assert_eq!(observed.engine.next_event(), Some(Duration::from_micros(526_500)));
}

#[test]
fn blocks_grow_with_what_is_decoded_and_the_promise_keeps_others_out() {
    let one = EngineSettings { ranks: 1, ..settings() };
    let mut observed = Observed::new(one);
    observed.act(&Act::Submit(ask(40, 40)));
    observed.act(&Act::Submit(ask(10, 10)));
    assert_eq!(observed.engine.loads()[0].active_blocks, 10);
    let load = observed.engine.loads()[0];
    assert_eq!((load.running, load.waiting), (1, 1), "20 of 24 blocks are promised, 5 are wanted");
    observed.act(&Act::Advance(40 + 10 * 8));
    assert_eq!(observed.engine.loads()[0].active_blocks, 13, "40 + 9 tokens");
    observed.act(&Act::Cancel(1));
    let load = observed.engine.loads()[0];
    assert_eq!((load.running, load.waiting, load.active_blocks), (1, 0, 3));
}

#[test]
fn refusals_say_why() {
    let one = EngineSettings { ranks: 1, max_running: 1, max_waiting: 0, ..settings() };
    let mut engine = Engine::new(one);
    let too_long = Refused::TooLong { needed_tokens: 97, context_tokens: 96 };
    assert_eq!(engine.submit(Duration::ZERO, ask(90, 7)), Err(too_long));
    let pinned = SequenceRequest { rank: Some(1), ..ask(1, 1) };
    assert_eq!(engine.submit(Duration::ZERO, pinned), Err(Refused::NoSuchRank { ranks: 1 }));
    assert!(engine.submit(Duration::ZERO, ask(90, 6)).is_ok());
    let full = Refused::Full { retry_after: millis(60) };
    assert_eq!(engine.submit(Duration::ZERO, ask(1, 1)), Err(full));
}

#[test]
fn a_frozen_engine_stands_still_and_loses_nothing() {
    let mut observed = Observed::new(settings());
    observed.act(&Act::Submit(ask(10, 5)));
    observed.act(&Act::Advance(4));
    observed.act(&Act::Freeze(true));
    observed.act(&Act::Submit(ask(10, 5)));
    observed.act(&Act::Advance(60_000));
    assert_eq!(observed.engine.next_event(), None);
    assert!(observed.decoded.is_empty());
    observed.act(&Act::Freeze(false));
    assert_eq!(observed.engine.next_event(), Some(millis(60_010)), "six of ten were left");
    observed.act(&Act::Advance(1_000));
    assert!(observed.is_empty());
}
