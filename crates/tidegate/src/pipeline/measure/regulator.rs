use super::meter::{ServiceTimes, StageMeter};
use super::partial_bytes::PartialBytes;
use super::signal_cell::SignalCell;
use super::snapshot::{PipelineSnapshot, StageSnapshot};
use crate::channel::{Window, WindowGauge, WindowSnapshot};
use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_core::signal::LevelGauge;
use tidegate_core::window::{AdaptiveScheduler, Grant, Stage, StageSample};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// A level is believed once it held for this many measurements: one large batch that passes a small window is
/// no congestion.
const CALM: usize = 3;

/// Measurements of a stage.
#[derive(Debug)]
pub(crate) struct Probe {
    /// Meter of the stage's service times.
    pub meter: Arc<StageMeter>,
    gauge: WindowGauge,
    before: Option<WindowSnapshot>,
    times: ServiceTimes,
}

/// Measures the stages, resizes their windows, and sets the signal for senders.
pub(crate) struct Regulator {
    scheduler: AdaptiveScheduler,
    probes: [Probe; Stage::COUNT],
    levels: LevelGauge,
    signal: SignalCell,
    partial: PartialBytes,
    /// True if the last read, and the last write, of the store succeeded.
    store_ok: [Arc<AtomicBool>; 2],
    snapshot: Arc<ArcSwap<PipelineSnapshot>>,
    fills: [f64; CALM],
}

// === impl Regulator ===

impl Regulator {
    pub(crate) fn new(
        scheduler: AdaptiveScheduler,
        levels: LevelGauge,
        probes: [Probe; Stage::COUNT],
        (signal, partial, store_ok): (SignalCell, PartialBytes, [Arc<AtomicBool>; 2]),
    ) -> Self {
        let nothing = PipelineSnapshot {
            law: scheduler.law(),
            signal: levels.signal(),
            memory_bytes: 0,
            budget_bytes: scheduler.config().budget_bytes,
            budget_ratio: 1.0,
            store_ok: true,
            stages: Vec::new(),
        };
        let snapshot = Arc::new(ArcSwap::from_pointee(nothing));
        let regulator = Self {
            scheduler,
            probes,
            levels,
            signal,
            partial,
            store_ok,
            snapshot,
            fills: [0.0; CALM],
        };
        let seen = regulator.look();
        regulator.snapshot.store(Arc::new(regulator.picture(&seen)));
        regulator
    }

    /// The published snapshot.
    pub(crate) fn snapshot(&self) -> Arc<ArcSwap<PipelineSnapshot>> {
        Arc::clone(&self.snapshot)
    }

    fn look(&self) -> [WindowSnapshot; Stage::COUNT] {
        std::array::from_fn(|i| self.probes[i].gauge.snapshot())
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        let start = Instant::now();
        let mut ticks = interval(self.scheduler.config().delta);
        // After a pause, one measurement over all of it; not many over nothing.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut short = false;
        loop {
            ticks.tick().await;
            self.tick(start);
            let rho = self.scheduler.rho();
            if (rho < 1.0) != short {
                short = !short;
                match short {
                    true => {
                        tracing::warn!(rho, "memory is short: windows are below what load asks for")
                    }
                    false => tracing::info!("memory is enough for the windows again"),
                }
            }
        }
    }

    fn tick(&mut self, start: Instant) {
        let (seen, delta) = (self.look(), self.scheduler.config().delta);
        let samples: [StageSample; Stage::COUNT] =
            std::array::from_fn(|i| self.probes[i].sample(&seen[i], delta));
        let now = start.elapsed();
        self.scheduler.tick(now, &samples, self.partial.bytes());
        for (stage, grant) in self.scheduler.downstream_first() {
            self.probes[stage.index()].gauge.resize(window(grant));
        }
        self.tell(now);
        self.snapshot.store(Arc::new(self.picture(&seen)));
    }

    fn tell(&mut self, now: Duration) {
        let config = self.scheduler.config();
        let pressure = |stage| self.scheduler.state(stage).pressure(config, now);
        let fullest = Stage::ALL.map(pressure).into_iter().fold(0.0, f64::max);
        self.fills.rotate_right(1);
        self.fills[0] = fullest;
        let lasting = self.fills.iter().copied().fold(f64::INFINITY, f64::min);
        self.levels.observe_fill(lasting);
        self.signal.set(self.levels.signal());
    }

    fn picture(&self, seen: &[WindowSnapshot; Stage::COUNT]) -> PipelineSnapshot {
        let stages = Stage::ALL.map(|stage| self.stage_picture(stage, &seen[stage.index()]));
        let queued: u64 = stages.iter().map(|stage| stage.queued_bytes).sum();
        PipelineSnapshot {
            law: self.scheduler.law(),
            signal: self.levels.signal(),
            memory_bytes: queued + self.partial.bytes(),
            budget_bytes: self.scheduler.config().budget_bytes,
            budget_ratio: self.scheduler.rho(),
            store_ok: self.store_ok.iter().all(|ok| ok.load(Ordering::Relaxed)),
            stages: stages.into(),
        }
    }

    fn stage_picture(&self, stage: Stage, seen: &WindowSnapshot) -> StageSnapshot {
        let grant = self.scheduler.grants()[stage.index()];
        let state = self.scheduler.state(stage);
        let times = self.probes[stage.index()].times;
        let held = seen.in_flight();
        StageSnapshot {
            stage,
            window: grant.window,
            credits: grant.credits,
            bytes_max: grant.bytes,
            queued: held.items,
            queued_bytes: held.bytes,
            occupancy: state.occupancy(),
            waiting_senders: seen.senders_waiting,
            p50_ns: times.p50_ns,
            p99_ns: times.p99_ns,
            baseline_p99_ns: state.baseline_p99_ns() as u64,
            arrivals: state.arrival_rate(),
            throughput: state.service_rate(),
            departed: finished(seen),
            service: self.probes[stage.index()].meter.total(),
            state: state.law_state(),
            cause: grant.cause,
            backpressure_events: state.decreases(),
        }
    }
}

/// Window of a channel by a grant.
pub(crate) fn window(grant: &Grant) -> Window {
    let items = u32::try_from(grant.credits).unwrap_or(u32::MAX).clamp(1, Window::ITEMS_MAX);
    Window { items, bytes: grant.bytes.clamp(1, Window::BYTES_MAX) }
}

/// Items that were received and processed: a stage that only holds leases makes no progress.
fn finished(seen: &WindowSnapshot) -> u64 {
    seen.departed_items_total.saturating_sub(seen.leased.items)
}

// === impl Probe ===

impl Probe {
    pub(crate) fn new(gauge: WindowGauge) -> Self {
        let meter = Arc::new(StageMeter::new());
        Self { gauge, meter, before: None, times: ServiceTimes::default() }
    }

    /// Time that senders waited. A sender that still waits counts with the whole interval.
    fn waited_ns(&self, seen: &WindowSnapshot, waits: u64, delta: Duration) -> u64 {
        let delta_ns = u64::try_from(delta.as_nanos()).unwrap_or(u64::MAX);
        let told_ns = self.meter.take_waited_ns().min(delta_ns);
        match (seen.senders_waiting, waits) {
            (0, 0) => 0,
            (0, _) => told_ns,
            _ => delta_ns,
        }
    }

    fn sample(&mut self, seen: &WindowSnapshot, delta: Duration) -> StageSample {
        let before = self.before.replace(*seen);
        let since = |now: u64, of: fn(&WindowSnapshot) -> u64| {
            now.saturating_sub(before.as_ref().map_or(0, of))
        };
        let taken = self.meter.take();
        if let Some(times) = taken {
            self.times = times;
        }
        let times = taken.unwrap_or_default();
        let held = seen.in_flight();
        StageSample {
            queued_items: held.items,
            queued_bytes: held.bytes,
            arrived_items: since(seen.arrived_items_total, |s| s.arrived_items_total),
            departed_items: since(finished(seen), finished),
            waited_ns: self.waited_ns(seen, since(seen.waits_total, |s| s.waits_total), delta),
            lease_ns: self.meter.take_longest_ns(),
            p50_ns: times.p50_ns,
            p99_ns: times.p99_ns,
            latency_samples: times.items,
        }
    }
}
