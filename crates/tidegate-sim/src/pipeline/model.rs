use super::channel::Channel;
use super::load::Arrivals;
use super::measure::Measures;
use super::server::{Server, Work};
use super::{PipelineReport, PipelineScenario};
use crate::random::SplitMix64;
use std::time::Duration;
use tidegate_core::window::{AdaptiveScheduler, Stage, StageSample, WindowConfigError};

/// Time goes on in steps of this.
pub(super) const STEP: Duration = Duration::from_millis(1);

/// Runs a scenario to its end.
///
/// # Errors
///
/// When its configuration of the windows is not valid.
pub fn run(scenario: &PipelineScenario) -> Result<PipelineReport, WindowConfigError> {
    let mut model = Model::new(scenario)?;
    let mut now = Duration::ZERO;
    let mut next_tick = scenario.config.delta;
    while now < scenario.duration {
        model.step(now);
        now += STEP;
        if now >= next_tick {
            model.tick(now);
            next_tick += scenario.config.delta;
        }
    }
    let held = model.channels.iter().map(Channel::items).sum();
    Ok(model.measures.into_report(held, model.unsent))
}

struct Model<'a> {
    scenario: &'a PipelineScenario,
    scheduler: AdaptiveScheduler,
    arrivals: Arrivals,
    /// Offered and not taken: their senders have them.
    unsent: u64,
    channels: [Channel; Stage::COUNT],
    servers: [Server; Stage::COUNT],
    measures: Measures,
}

// === impl Model ===

impl<'a> Model<'a> {
    fn new(scenario: &'a PipelineScenario) -> Result<Self, WindowConfigError> {
        let scheduler = AdaptiveScheduler::new(scenario.config, scenario.law)?;
        let mut chance = SplitMix64::new(scenario.seed);
        let arrivals = Arrivals::new(scenario.load, chance.fork());
        let channel =
            |i: usize| Channel::new(&scheduler.grants()[i], scenario.stages[i].item_bytes);
        Ok(Self {
            scenario,
            arrivals,
            unsent: 0,
            channels: std::array::from_fn(channel),
            servers: std::array::from_fn(|i| Server::new(scenario.stages[i], chance.fork())),
            measures: Measures::new(scenario),
            scheduler,
        })
    }

    /// The last stage first: a credit that it gives back is there for the one before it in the same step.
    fn step(&mut self, now: Duration) {
        for stage in (0..Stage::COUNT).rev() {
            self.serve(stage, now);
        }
        let offered = self.arrivals.offered(now, STEP);
        self.unsent += offered;
        let taken = self.channels[0].send(self.unsent);
        self.unsent -= taken;
        self.measures.offered(offered, taken, now);
        self.channels.iter_mut().for_each(|channel| channel.pass(STEP));
        self.measures.look(now, &self.channels, &self.scheduler);
    }

    fn serve(&mut self, stage: usize, now: Duration) {
        let Some(slowness) = self.scenario.slowness(stage, now) else { return };
        let mut budget_s = STEP.as_secs_f64();
        loop {
            match self.servers[stage].work() {
                Work::Done { items } => {
                    let taken = self.deliver(stage, items, now);
                    if taken < items {
                        return;
                    }
                }
                Work::Busy { .. } => {
                    budget_s = self.servers[stage].spend(budget_s);
                    if budget_s <= 0.0 {
                        return;
                    }
                }
                Work::Idle => {
                    let items = self.channels[stage].lease(self.servers[stage].chunk_items());
                    if items == 0 {
                        return;
                    }
                    self.servers[stage].begin(items, slowness);
                }
            }
        }
    }

    /// Hands on what is done; what the next stage has no credits for stays in this one's window.
    fn deliver(&mut self, stage: usize, items: u64, now: Duration) -> u64 {
        let taken = match self.channels.get_mut(stage + 1) {
            Some(next) => next.send(items),
            None => {
                self.measures.delivered(items, now);
                items
            }
        };
        self.channels[stage].release(taken);
        self.servers[stage].deliver(taken);
        taken
    }

    fn tick(&mut self, now: Duration) {
        let samples: [StageSample; Stage::COUNT] = std::array::from_fn(|i| {
            let mut sample = self.channels[i].sample();
            self.servers[i].measure(&mut sample);
            sample
        });
        let grants = self.scheduler.tick(now, &samples, 0);
        for (channel, grant) in self.channels.iter_mut().zip(grants).rev() {
            channel.resize(grant);
        }
        self.measures.tick(now, &self.channels, grants);
    }
}
