use super::{Spread, StageModel};
use crate::random::Draw;
use tidegate_core::rng::Rng;
use tidegate_core::window::{LATENCY_SAMPLES_MIN, StageSample};

/// The work in progress of a stage.
#[derive(Debug)]
pub(super) struct Server {
    model: StageModel,
    rng: Rng,
    work: Work,
    /// Seconds for an item, of the chunks since the last p99.
    times_s: Vec<f64>,
    lease_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Work {
    Idle,
    /// A chunk that needs this much longer.
    Busy {
        items: u64,
        left_s: f64,
    },
    /// A chunk that is done and waits for the next stage.
    Done {
        items: u64,
    },
}

// === impl Server ===

impl Server {
    pub(super) fn new(model: StageModel, rng: Rng) -> Self {
        Self { model, rng, work: Work::Idle, times_s: Vec::new(), lease_s: 0.0 }
    }

    pub(super) fn work(&self) -> Work {
        self.work
    }

    pub(super) fn chunk_items(&self) -> u64 {
        self.model.chunk_items
    }

    pub(super) fn begin(&mut self, items: u64, slowness: f64) {
        let time_s = self.model.chunk_s(items) * slowness * self.draw();
        self.times_s.push(time_s / items as f64);
        self.lease_s = self.lease_s.max(time_s);
        self.work = Work::Busy { items, left_s: time_s };
    }

    /// Works for this long at most; the time that is left over.
    pub(super) fn spend(&mut self, budget_s: f64) -> f64 {
        let Work::Busy { items, left_s } = self.work else { return budget_s };
        if left_s > budget_s {
            self.work = Work::Busy { items, left_s: left_s - budget_s };
            return 0.0;
        }
        self.work = Work::Done { items };
        budget_s - left_s
    }

    /// The next stage has taken these.
    pub(super) fn deliver(&mut self, taken: u64) {
        if let Work::Done { items } = self.work {
            let items = items - taken;
            self.work = if items == 0 { Work::Idle } else { Work::Done { items } };
        }
    }

    /// Adds the times to a sample, once there are enough of them.
    pub(super) fn measure(&mut self, sample: &mut StageSample) {
        sample.lease_ns = (self.lease_s * 1e9) as u64;
        self.lease_s = 0.0;
        let count = self.times_s.len();
        if (count as u64) < LATENCY_SAMPLES_MIN {
            return;
        }
        self.times_s.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| (self.times_s[(count as f64 * share) as usize] * 1e9) as u64;
        sample.p50_ns = at(0.5);
        sample.p99_ns = at(0.99);
        sample.latency_samples = count as u64;
        self.times_s.clear();
    }

    /// A factor with mean 1.
    fn draw(&mut self) -> f64 {
        match self.model.spread {
            Spread::Fixed => 1.0,
            Spread::Exponential => self.rng.exponential(1.0),
            Spread::TwoSpeeds { slow_share, slow_factor } => {
                let fast = 1.0 / (1.0 - slow_share + slow_share * slow_factor);
                let is_slow = self.rng.uniform() <= slow_share;
                self.rng.exponential(if is_slow { fast * slow_factor } else { fast })
            }
        }
    }
}
