use super::{StageSample, WindowConfig};
use std::time::Duration;

/// Time constant of the arrival rate: half a period, so that a burst is seen within one.
const ARRIVAL_MEMORY_S: f64 = 0.5;

/// Time constant of a rising service rate, so that a growing window sees the effect …
const SERVICE_RISE_MEMORY_S: f64 = 2.0;

/// … and of a falling one, so that a few slow batches do not cut a window.
const SERVICE_FALL_MEMORY_S: f64 = 5.0;

/// Time constant of the lease time.
const LEASE_MEMORY_S: f64 = 2.0;

/// Time constant of the item size.
const SIZE_MEMORY_S: f64 = 1.0;

/// Estimates of a stage's flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimates {
    pub queued_items: u64,
    /// Queued items in the sample before.
    pub queued_before: u64,
    /// λ, items per second.
    pub arrival_rate: f64,
    /// μ, items per second while there is work; `None` before there was any.
    pub service_rate: Option<f64>,
    /// Work time of items taken by the stage, in seconds: the longest lease, or the gap between two departures.
    pub lease_s: f64,
    /// Mean size of an item, in bytes; `None` before the first.
    pub item_bytes: Option<f64>,
    /// Time since the last departure, while items were queued.
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

    /// Updates the service rate. Time without departures is added to the next sample with departures, so that a
    /// stage that works in batches has its mean rate at each of them. The time of a stall is not: it carries no
    /// information about the normal speed, and a rate that decays with it would cut the window a second time
    /// afterwards.
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

    /// Arrivals minus departures, per second. 0 if the service rate is unknown.
    pub(super) fn surplus(&self) -> f64 {
        self.service_rate.map_or(0.0, |service| self.arrival_rate - service)
    }
}

/// One step of an exponential mean with the time constant `memory_s`. Without `exp`, whose last digit differs
/// between platforms; the difference is smaller than the measurement error.
pub(super) fn toward(mean: f64, value: f64, dt_s: f64, memory_s: f64) -> f64 {
    mean + (value - mean) * dt_s / (memory_s + dt_s)
}
