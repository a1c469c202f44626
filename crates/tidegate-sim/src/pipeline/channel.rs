use std::time::Duration;
use tidegate_core::window::{Grant, StageSample};

/// The window at the entrance of a stage: what its channel is to the pipeline.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) waiting: u64,
    pub(super) leased: u64,
    /// What is granted.
    pub(super) credits: u64,
    /// What of it is free: below zero when it was cut below what is held, until that is given back.
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

    /// Takes as many of these as there are credits for. Of the others the sender is told to wait.
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

    /// So much time has gone by.
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

    /// What was seen since the last sample. The times are the stage's to add.
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
