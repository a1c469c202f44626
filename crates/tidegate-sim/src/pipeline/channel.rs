use std::time::Duration;
use tidegate_core::window::{Grant, StageSample};

/// The window at the entrance of a stage: what its channel is to the pipeline.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) waiting: u64,
    pub(super) leased: u64,
    /// Credits that are granted.
    pub(super) credits: u64,
    /// Free credits; negative while the window is smaller than the items in it.
    pub(super) free: i64,
    bytes_max: u64,
    item_bytes: u64,
    arrived: u64,
    departed: u64,
    /// For how long a sender waited since the last sample.
    waited: Duration,
    /// A sender waits now.
    pub(super) waits: bool,
}

// === impl Channel ===

impl Channel {
    pub(super) fn new(grant: &Grant, item_bytes: u64) -> Self {
        Self {
            waiting: 0,
            leased: 0,
            credits: grant.credits,
            free: grant.credits as i64,
            bytes_max: grant.bytes,
            item_bytes,
            arrived: 0,
            departed: 0,
            waited: Duration::ZERO,
            waits: false,
        }
    }

    pub(super) fn resize(&mut self, grant: &Grant) {
        self.free += grant.credits as i64 - self.credits as i64;
        self.credits = grant.credits;
        self.bytes_max = grant.bytes;
    }

    /// Items in the window.
    pub(super) fn items(&self) -> u64 {
        self.waiting + self.leased
    }

    pub(super) fn bytes(&self) -> u64 {
        self.items() * self.item_bytes
    }

    /// Accepts as many of these as there are credits for. The sender waits with the others.
    pub(super) fn send(&mut self, items: u64) -> u64 {
        let by_items = self.free.max(0) as u64;
        let by_bytes = self.bytes_max.saturating_sub(self.bytes()) / self.item_bytes;
        let taken = items.min(by_items).min(by_bytes);
        self.free -= taken as i64;
        self.waiting += taken;
        self.arrived += taken;
        self.waits = taken < items;
        taken
    }

    /// Advances the time.
    pub(super) fn pass(&mut self, time: Duration) {
        if self.waits {
            self.waited += time;
        }
    }

    pub(super) fn lease(&mut self, most: u64) -> u64 {
        let items = self.waiting.min(most);
        self.waiting -= items;
        self.leased += items;
        items
    }

    pub(super) fn release(&mut self, items: u64) {
        self.leased -= items;
        self.free += items as i64;
        self.departed += items;
    }

    /// Returns the sample since the last one. The stage adds its times.
    pub(super) fn sample(&mut self) -> StageSample {
        let sample = StageSample {
            queued_items: self.items(),
            queued_bytes: self.bytes(),
            arrived_items: self.arrived,
            departed_items: self.departed,
            waited_ns: self.waited.as_nanos() as u64,
            ..StageSample::default()
        };
        (self.arrived, self.departed, self.waited) = (0, 0, Duration::ZERO);
        sample
    }
}
