use super::StageModel;
use super::channel::Channel;
use super::server::{Server, Work};
use std::time::Duration;
use tidegate_core::rng::Rng;
use tidegate_core::window::{
    AdaptiveScheduler, Grant, Law, Stage, StageSample, WindowConfig, WindowConfigError,
};

/// Time goes on in steps of this.
pub(super) const STEP: Duration = Duration::from_millis(1);

/// The stages, what is in them, and the scheduler of their windows. Whoever drives it says what is offered and how
/// slow each stage is.
#[derive(Debug)]
pub(super) struct Stages {
    pub(super) scheduler: AdaptiveScheduler,
    /// Offered and not taken: their senders have them.
    pub(super) unsent: u64,
    pub(super) channels: [Channel; Stage::COUNT],
    pub(super) servers: [Server; Stage::COUNT],
    /// The last sample of each stage.
    pub(super) samples: [StageSample; Stage::COUNT],
    /// Decisions of channels and the scheduler.
    pub(super) decisions: u64,
}

/// The movements of one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    /// Items that Accept took.
    pub(super) taken: u64,
    /// Items that left Store.
    pub(super) delivered: u64,
}

// === impl Stages ===

impl Stages {
    /// Empty ones, at the least windows. Draws from `rng` once for each.
    pub(super) fn new(
        config: WindowConfig,
        law: Law,
        models: &[StageModel; Stage::COUNT],
        rng: &mut Rng,
    ) -> Result<Self, WindowConfigError> {
        let scheduler = AdaptiveScheduler::new(config, law)?;
        let channel = |i: usize| Channel::new(&scheduler.grants()[i], models[i].item_bytes);
        Ok(Self {
            unsent: 0,
            channels: std::array::from_fn(channel),
            servers: std::array::from_fn(|i| Server::new(models[i], rng.fork())),
            samples: [StageSample::default(); Stage::COUNT],
            decisions: 0,
            scheduler,
        })
    }

    /// One millisecond. The last stage first: a credit that it gives back is there for the one before it in the
    /// same step. A stage without a slowness does nothing.
    pub(super) fn step(&mut self, offered: u64, slowness: [Option<f64>; Stage::COUNT]) -> Moved {
        let mut moved = Moved::default();
        for stage in (0..Stage::COUNT).rev() {
            if let Some(slowness) = slowness[stage] {
                moved.delivered += self.serve(stage, slowness);
            }
        }
        self.unsent += offered;
        moved.taken = self.channels[0].send(self.unsent);
        self.unsent -= moved.taken;
        self.decisions += 1;
        self.channels.iter_mut().for_each(|channel| channel.pass(STEP));
        moved
    }

    /// Lets a stage work for one step; what left Store by that.
    fn serve(&mut self, stage: usize, slowness: f64) -> u64 {
        let mut budget_s = STEP.as_secs_f64();
        let mut delivered = 0;
        loop {
            match self.servers[stage].work() {
                Work::Done { items } => {
                    let taken = self.deliver(stage, items);
                    if stage + 1 == Stage::COUNT {
                        delivered += taken;
                    }
                    if taken < items {
                        return delivered;
                    }
                }
                Work::Busy { .. } => {
                    budget_s = self.servers[stage].spend(budget_s);
                    if budget_s <= 0.0 {
                        return delivered;
                    }
                }
                Work::Idle => {
                    let items = self.channels[stage].lease(self.servers[stage].chunk_items());
                    if items == 0 {
                        return delivered;
                    }
                    self.servers[stage].begin(items, slowness);
                }
            }
        }
    }

    /// Hands on what is done; what the next stage has no credits for stays in this one's window.
    fn deliver(&mut self, stage: usize, items: u64) -> u64 {
        self.decisions += 1;
        let taken = match self.channels.get_mut(stage + 1) {
            Some(next) => next.send(items),
            None => items,
        };
        self.channels[stage].release(taken);
        self.servers[stage].deliver(taken);
        taken
    }

    /// A measurement: the scheduler sees what was, and the channels get what it grants.
    pub(super) fn tick(&mut self, now: Duration) -> &[Grant; Stage::COUNT] {
        self.samples = std::array::from_fn(|i| {
            let mut sample = self.channels[i].sample();
            self.servers[i].measure(&mut sample);
            sample
        });
        self.decisions += Stage::COUNT as u64;
        let grants = self.scheduler.tick(now, &self.samples, 0);
        for (channel, grant) in self.channels.iter_mut().zip(grants).rev() {
            channel.resize(grant);
        }
        self.scheduler.grants()
    }

    /// Items in all windows.
    pub(super) fn held(&self) -> u64 {
        self.channels.iter().map(Channel::items).sum()
    }

    /// Bytes in all windows.
    pub(super) fn held_bytes(&self) -> u64 {
        self.channels.iter().map(Channel::bytes).sum()
    }
}
