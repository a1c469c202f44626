use super::{LimitScenario, ServerChange, ServerModel};
use crate::agenda::Time;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use tidegate_core::rng::Rng;

/// Nanoseconds of so many seconds.
pub(super) fn nanos(seconds: f64) -> Time {
    (seconds.max(0.0) * 1e9) as Time
}

/// The upstream server.
#[derive(Debug)]
pub(super) struct Server {
    model: ServerModel,
    slots: usize,
    queue_max: Option<usize>,
    slowness: f64,
    pub(super) network_s: f64,
    is_down: bool,
    /// Requests in slots, by number.
    running: BTreeSet<usize>,
    queued: VecDeque<usize>,
    /// Requests in a server without slots, by the progress at which each is done.
    shared: BinaryHeap<Reverse<(u64, usize)>>,
    /// Progress of a request that was there from the start.
    progress: f64,
    progress_at: Time,
    /// Plans of completions that are still valid have this number.
    version: u64,
    rng: Rng,
}

/// Effect of an action at the server, for the simulation to plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum Effect {
    /// A request in a slot is done at this time.
    DoneAt(Time, usize),
    /// The next of the shared requests is done at this time.
    NextAt(Time, u64),
    /// The server refused a request.
    Refused(usize),
    /// The connection of a request broke.
    Broken(usize),
}

// === impl Server ===

impl Server {
    pub(super) fn new(scenario: &LimitScenario, rng: Rng) -> Self {
        let (slots, queue_max) = match scenario.server {
            ServerModel::Slots { slots, queue } => (slots as usize, queue.map(|it| it as usize)),
            ServerModel::Thrashing { slots, .. } => (slots as usize, None),
            _ => (0, None),
        };
        Self {
            model: scenario.server,
            slots,
            queue_max,
            slowness: 1.0,
            network_s: scenario.network_s,
            is_down: false,
            running: BTreeSet::new(),
            queued: VecDeque::new(),
            shared: BinaryHeap::new(),
            progress: 0.0,
            progress_at: 0,
            version: 0,
            rng,
        }
    }

    pub(super) fn submit(
        &mut self,
        now: Time,
        request: usize,
        scenario: &LimitScenario,
    ) -> Option<Effect> {
        if self.is_down {
            return Some(Effect::Broken(request));
        }
        if !matches!(self.model, ServerModel::Slots { .. } | ServerModel::Thrashing { .. }) {
            self.advance(now);
            let done = self.progress + scenario.service.draw(&mut self.rng);
            // Positive numbers are in the order of their bits.
            self.shared.push(Reverse((done.to_bits(), request)));
            return self.plan_next(now);
        }
        let is_full = |max: usize| self.running.len() + self.queued.len() >= self.slots + max;
        if self.queue_max.is_some_and(is_full) {
            return Some(Effect::Refused(request));
        }
        self.queued.push_back(request);
        self.start_next(now, scenario)
    }

    /// Starts a queued request if a slot is free.
    fn start_next(&mut self, now: Time, scenario: &LimitScenario) -> Option<Effect> {
        if self.running.len() >= self.slots {
            return None;
        }
        let thrashing = self.thrashing();
        let request = self.queued.pop_front()?;
        self.running.insert(request);
        let work_s = scenario.service.draw(&mut self.rng) * self.slowness * thrashing;
        Some(Effect::DoneAt(now + nanos(work_s), request))
    }

    /// Factor of all work that begins now.
    fn thrashing(&self) -> f64 {
        let ServerModel::Thrashing { above, .. } = self.model else { return 1.0 };
        let excess = (self.running.len() + self.queued.len()) as f64 / f64::from(above);
        (excess * excess).max(1.0)
    }

    /// Ends a request in a slot; `None` if it was lost. The effects are those of the requests that start then.
    pub(super) fn done(
        &mut self,
        now: Time,
        request: usize,
        scenario: &LimitScenario,
    ) -> Option<Vec<Effect>> {
        if !self.running.remove(&request) {
            return None;
        }
        Some(std::iter::from_fn(|| self.start_next(now, scenario)).collect())
    }

    /// Ends the next of the shared requests; `None` if the plan is no longer valid.
    pub(super) fn next_done(&mut self, now: Time, version: u64) -> Option<(usize, Option<Effect>)> {
        if version != self.version {
            return None;
        }
        self.advance(now);
        let Reverse((_, request)) = self.shared.pop()?;
        Some((request, self.plan_next(now)))
    }

    pub(super) fn change(
        &mut self,
        now: Time,
        change: ServerChange,
        scenario: &LimitScenario,
    ) -> Vec<Effect> {
        match change {
            ServerChange::Slots(slots) => {
                self.slots = slots as usize;
                std::iter::from_fn(|| self.start_next(now, scenario)).collect()
            }
            ServerChange::Slowness(slowness) => {
                self.advance(now);
                self.slowness = slowness;
                self.plan_next(now).into_iter().collect()
            }
            ServerChange::Network(network_s) => {
                self.network_s = network_s;
                Vec::new()
            }
            ServerChange::Stop => {
                self.is_down = true;
                let running = std::mem::take(&mut self.running);
                let queued = std::mem::take(&mut self.queued);
                running.into_iter().chain(queued).map(Effect::Broken).collect()
            }
            ServerChange::Start => {
                self.is_down = false;
                Vec::new()
            }
        }
    }

    fn advance(&mut self, now: Time) {
        if !self.shared.is_empty() {
            let elapsed_s = (now - self.progress_at) as f64 / 1e9;
            self.progress += elapsed_s * self.speed();
        }
        self.progress_at = now;
    }

    fn plan_next(&mut self, now: Time) -> Option<Effect> {
        self.version += 1;
        let Reverse((done, _)) = self.shared.peek()?;
        let left_s = (f64::from_bits(*done) - self.progress).max(0.0) / self.speed();
        Some(Effect::NextAt(now + nanos(left_s), self.version))
    }

    fn speed(&self) -> f64 {
        self.model.speed(self.shared.len()) / self.slowness
    }
}
