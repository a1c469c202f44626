use super::audit::Audit;
use super::stages::{STEP, Stages};
use super::{FlowPicture, FlowRecorder, Spread, StageModel};
use crate::Violation;
use crate::arrivals::Offers;
use crate::report::Findings;
use crate::scenario::{OTHERS_FASTER, PipelineWorld, Scenario};
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_core::rng::Rng;
use tidegate_core::signal::{LevelConfig, LevelGauge};
use tidegate_core::window::{Stage, WindowConfig};

/// Bytes of a record in a window, about what one of a few labels has.
const RECORD_BYTES: u64 = 256;

/// A level is believed once it held for this many measurements, as in the pipeline that ships.
const CALM: usize = 3;

/// After the end nothing more comes. What waits then must be done in this many times the time that it takes, and a
/// little: or something holds it.
const DRAIN_TIMES: f64 = 2.0;
const DRAIN_LEAST: Duration = Duration::from_secs(10);

/// Runs a scenario of the pipeline in virtual time, and on until all that was offered is stored.
///
/// # Errors
///
/// At the first step at which something is that must never be.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Findings, Violation> {
    let Some(world) = &scenario.pipeline else {
        return Err(Violation {
            invariant: "only a scenario with [pipeline] has a pipeline to simulate",
            found: format!("{:?} has none", scenario.name),
            at: Duration::ZERO,
            events: 0,
        });
    };
    let mut run = Run::new(scenario, world, seed)?;
    for offer in Offers::new(scenario, seed) {
        run.step(offer.records)?;
    }
    run.drain(world.store_per_s)?;
    Ok(run.conclude())
}

/// A simulation under way.
struct Run<'a> {
    scenario: &'a Scenario,
    stages: Stages,
    audit: Audit,
    recorder: FlowRecorder,
    levels: LevelGauge,
    pressures: [f64; CALM],
    /// When how many records were offered that are not stored. They are stored in the order in which they came.
    waiting: VecDeque<(Duration, u64)>,
    now: Duration,
    next_tick: Duration,
}

// === impl Run ===

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario, world: &PipelineWorld, seed: u64) -> Result<Self, Violation> {
        let mut seeds = Rng::new(seed);
        // The first two streams are those of the arrivals.
        seeds.fork();
        seeds.fork();
        let config = WindowConfig::default();
        let refused = |found: String| Violation {
            invariant: "the default configuration is valid",
            found,
            at: Duration::ZERO,
            events: 0,
        };
        let stages = Stages::new(config, world.law, &models(world), &mut seeds)
            .map_err(|error| refused(error.to_string()))?;
        let levels =
            LevelGauge::new(LevelConfig::default()).map_err(|error| refused(error.to_string()))?;
        Ok(Self {
            scenario,
            stages,
            audit: Audit::default(),
            recorder: FlowRecorder::new(scenario),
            levels,
            pressures: [0.0; CALM],
            waiting: VecDeque::new(),
            now: Duration::ZERO,
            next_tick: config.delta,
        })
    }

    fn step(&mut self, offered: u64) -> Result<(), Violation> {
        let now_s = self.now.as_secs_f64();
        let slowness = Stage::ALL.map(|stage| self.scenario.slowness(stage, now_s));
        if offered > 0 {
            self.recorder.offered(self.now, offered);
            self.waiting.push_back((self.now, offered));
        }
        let moved = self.stages.step(offered, slowness);
        self.stored(moved.delivered);
        self.audit.step(&self.stages, offered, moved, self.now)?;
        self.now += STEP;
        if self.now >= self.next_tick {
            self.tick()?;
        }
        Ok(())
    }

    fn stored(&mut self, records: u64) {
        let mut left = records;
        while left > 0 {
            let Some((due, count)) = self.waiting.front_mut() else { return };
            let these = left.min(*count);
            self.recorder.stored(self.now, *due, these);
            *count -= these;
            left -= these;
            if *count == 0 {
                self.waiting.pop_front();
            }
        }
    }

    fn tick(&mut self) -> Result<(), Violation> {
        let grants = *self.stages.tick(self.now);
        self.audit.tick(&self.stages, self.now)?;
        let config = *self.stages.scheduler.config();
        self.next_tick += config.delta;
        let pressure = |stage| self.stages.scheduler.state(stage).pressure(&config, self.now);
        self.pressures.rotate_right(1);
        self.pressures[0] = Stage::ALL.map(pressure).into_iter().fold(0.0, f64::max);
        let lasting = self.pressures.iter().copied().fold(f64::INFINITY, f64::min);
        self.recorder.look(&FlowPicture {
            at: self.now,
            windows: grants.map(|grant| grant.window),
            queued: std::array::from_fn(|stage| self.stages.channels[stage].items()),
            held_bytes: self.stages.held_bytes(),
            budget_bytes: config.budget_bytes,
            window_least: config.window_min,
            level: self.levels.observe_fill(lasting),
        });
        Ok(())
    }

    /// Goes on without load until nothing waits any more.
    fn drain(&mut self, store_per_s: f64) -> Result<(), Violation> {
        let waiting = self.stages.unsent + self.stages.held();
        let work_s = DRAIN_TIMES * waiting as f64 / store_per_s;
        let until = self.now + DRAIN_LEAST + Duration::from_secs_f64(work_s);
        while self.stages.unsent + self.stages.held() > 0 {
            if self.now >= until {
                let left = self.stages.unsent + self.stages.held();
                return Err(Violation {
                    invariant: "once nothing blocks a stage, all that waits flows on",
                    found: format!("{left} of {waiting} records still wait without any load"),
                    at: self.now,
                    events: self.stages.decisions,
                });
            }
            self.step(0)?;
        }
        Ok(())
    }

    fn conclude(self) -> Findings {
        let lost = self.audit.offered() - self.audit.stored();
        let mut findings = self.recorder.conclude(lost, Some(0));
        findings.decisions = self.stages.decisions;
        findings
    }
}

fn models(world: &PipelineWorld) -> [StageModel; Stage::COUNT] {
    let store = StageModel {
        items_per_s: world.store_per_s,
        chunk_time: Duration::ZERO,
        chunk_items: u64::from(world.batch_records),
        spread: Spread::Exponential,
        item_bytes: RECORD_BYTES,
    };
    let fast = StageModel { items_per_s: OTHERS_FASTER * world.store_per_s, ..store };
    [fast, fast, fast, fast, store]
}
