use super::{StageSample, WindowConfig};
use std::time::Duration;

/// How long the arrival rate remembers: as long as half a period, so that a burst is seen within one.
const ARRIVAL_MEMORY_S: f64 = 0.5;

/// How long the service rate remembers when it rises, so that a window that grows finds what that is good for …
const SERVICE_RISE_MEMORY_S: f64 = 2.0;

/// … and when it falls, so that a few slow batches do not cut a window.
const SERVICE_FALL_MEMORY_S: f64 = 5.0;

/// How long the time of a lease remembers.
const LEASE_MEMORY_S: f64 = 2.0;

/// How long the size of an item remembers.
const SIZE_MEMORY_S: f64 = 1.0;

/// What is known of a stage's flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimates {
    pub queued_items: u64,
    /// In the sample before.
    pub queued_before: u64,
    /// λ, items a second.
    pub arrival_rate: f64,
    /// μ, items a second while there is something to do; none before there was.
    pub service_rate: Option<f64>,
    /// How long the stage works on what it has taken, in seconds: the longest lease, or the gap between two
    /// departures.
    pub lease_s: f64,
    /// The mean size of an item, in bytes; none before there was one.
    pub item_bytes: Option<f64>,
    /// How long nothing has left although something was there.
    pub silence: Duration,
}

// === impl Estimates ===

impl Estimates {
    pub(super) fn observe(
        &mut self,
        config: &WindowConfig,
        sample: &StageSample,
        elapsed: Duration,
    ) {
        let dt = elapsed.as_secs_f64();
        if dt > 0.0 {
            let arrivals = sample.arrived_items as f64 / dt;
            self.arrival_rate = toward(self.arrival_rate, arrivals, dt, ARRIVAL_MEMORY_S);
            self.observe_service(config, sample, elapsed);
        }
        if sample.queued_items > 0 {
            let size = sample.queued_bytes as f64 / sample.queued_items as f64;
            let known = self.item_bytes.unwrap_or(size);
            self.item_bytes = Some(toward(known, size, dt, SIZE_MEMORY_S));
        }
        self.queued_before = self.queued_items;
        self.queued_items = sample.queued_items;
    }

    /// Time in which nothing left is added to the next time in which something did, so that a stage that works
    /// in batches has its mean rate at every one of them. A stall's is not: it says nothing of how fast the
    /// stage is when it is well, and a rate that decays with it would cut the window for a second time after it.
    fn observe_service(&mut self, config: &WindowConfig, sample: &StageSample, elapsed: Duration) {
        let was_busy = self.queued_items > 0;
        let is_busy = sample.queued_items > 0 || sample.waited_ns > 0;
        if sample.departed_items == 0 {
            self.silence = if sample.queued_items > 0 {
                self.silence.saturating_add(elapsed)
            } else {
                Duration::ZERO
            };
            return;
        }
        if was_busy && is_busy && self.silence < config.period {
            let dt = self.silence.saturating_add(elapsed).as_secs_f64();
            let rate = sample.departed_items as f64 / dt;
            let known = self.service_rate.unwrap_or(rate);
            let memory_s = if rate > known { SERVICE_RISE_MEMORY_S } else { SERVICE_FALL_MEMORY_S };
            self.service_rate = Some(toward(known, rate, dt, memory_s));
            let lease_s = (sample.lease_ns as f64 / 1e9).max(self.silence.as_secs_f64());
            self.lease_s = toward(self.lease_s, lease_s, dt, LEASE_MEMORY_S);
        }
        self.silence = Duration::ZERO;
    }

    pub(super) fn item_bytes(&self, config: &WindowConfig) -> f64 {
        let least = config.item_bytes_min as f64;
        self.item_bytes.unwrap_or(least).max(least)
    }

    /// How much faster items come than go, a second. 0 when it is not known how fast they go.
    pub(super) fn surplus(&self) -> f64 {
        self.service_rate.map_or(0.0, |service| self.arrival_rate - service)
    }
}

/// One step of a mean that remembers `memory_s`. Not by the exponential function: its last digit differs
/// between platforms, and this differs from it by less than the measurements do.
pub(super) fn toward(mean: f64, value: f64, dt_s: f64, memory_s: f64) -> f64 {
    mean + (value - mean) * dt_s / (memory_s + dt_s)
}
