use super::config::PipelineConfig;
use super::counters::PipelineCounters;
use super::item::{Parsed, Priced};
use super::measure::meter::StageMeter;
use super::measure::partial_bytes::PartialBytes;
use super::measure::regulator::{Probe, Regulator};
use super::measure::signal_cell::SignalCell;
use super::rejections::Rejections;
use super::senders::Senders;
use super::stages::{Accept, Evaluate, Parse, Reassemble, StoreBackoff, StoreStage};
use super::stale_senders::StaleSenders;
use crate::channel::{WindowedReceiver, WindowedSender};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use tidegate_core::frame::FrameLimits;
use tidegate_core::line_protocol::LineParser;
use tidegate_core::signal::LevelGauge;
use tidegate_core::tariff::Evaluator;
use tidegate_core::usage::Names;
use tidegate_core::window::{AdaptiveScheduler, Stage};

/// Parts that several stages share.
pub(crate) struct Common {
    pub counters: Arc<PipelineCounters>,
    pub signal: SignalCell,
    rejections: Rejections,
    partial: PartialBytes,
    read_ok: Arc<AtomicBool>,
    write_ok: Arc<AtomicBool>,
    stale: StaleSenders,
    durable: Arc<AtomicU64>,
}

// === impl Common ===

impl Common {
    pub(crate) fn new(levels: &LevelGauge) -> Self {
        let counters = Arc::new(PipelineCounters::default());
        Self {
            rejections: Rejections::new(Arc::clone(&counters)),
            counters,
            signal: SignalCell::new(levels.signal()),
            partial: PartialBytes::default(),
            read_ok: Arc::new(AtomicBool::new(true)),
            write_ok: Arc::new(AtomicBool::new(true)),
            stale: StaleSenders::default(),
            durable: Arc::new(AtomicU64::new(0)),
        }
    }

    pub(crate) fn accept(&self) -> Accept {
        Accept { counters: Arc::clone(&self.counters) }
    }

    pub(crate) fn reassemble(&self, config: &PipelineConfig) -> Reassemble {
        Reassemble {
            counters: Arc::clone(&self.counters),
            rejections: self.rejections.clone(),
            signal: self.signal.clone(),
            partial: self.partial.clone(),
            limits: config.frames,
            line_bytes_max: config.line_bytes_max,
            cutters: HashMap::new(),
        }
    }

    pub(crate) fn parse(&self, config: &PipelineConfig) -> Parse {
        Parse {
            counters: Arc::clone(&self.counters),
            rejections: self.rejections.clone(),
            signal: self.signal.clone(),
            limits: config.frames,
            lines: LineParser::new(config.lines.clone()),
            access: Arc::clone(&config.access),
            names: Names::default(),
        }
    }

    pub(crate) fn evaluate<S>(
        &self,
        (input, output): (WindowedReceiver<Parsed>, WindowedSender<Priced>),
        (meter, next): (Arc<StageMeter>, Arc<StageMeter>),
        store: &Arc<S>,
        evaluator: Evaluator,
    ) -> Evaluate<S> {
        Evaluate {
            input,
            output,
            meter,
            next,
            store: Arc::clone(store),
            evaluator,
            senders: Senders::default(),
            counters: Arc::clone(&self.counters),
            rejections: self.rejections.clone(),
            signal: self.signal.clone(),
            backoff: self.backoff(&self.read_ok),
            stale: self.stale.clone(),
            durable: Arc::clone(&self.durable),
        }
    }

    pub(crate) fn store_stage<S>(
        &self,
        input: WindowedReceiver<Priced>,
        meter: Arc<StageMeter>,
        store: Arc<S>,
        limits: FrameLimits,
    ) -> StoreStage<S> {
        StoreStage {
            input,
            meter,
            store,
            counters: Arc::clone(&self.counters),
            rejections: self.rejections.clone(),
            signal: self.signal.clone(),
            limits,
            backoff: self.backoff(&self.write_ok),
            stale: self.stale.clone(),
            durable: Arc::clone(&self.durable),
        }
    }

    pub(crate) fn regulator(
        &self,
        scheduler: AdaptiveScheduler,
        levels: LevelGauge,
        probes: [Probe; Stage::COUNT],
    ) -> Regulator {
        let (signal, partial) = (self.signal.clone(), self.partial.clone());
        let store_ok = [&self.read_ok, &self.write_ok].map(Arc::clone);
        Regulator::new(scheduler, levels, probes, (signal, partial, store_ok))
    }

    fn backoff(&self, store_ok: &Arc<AtomicBool>) -> StoreBackoff {
        StoreBackoff::new(Arc::clone(&self.counters), Arc::clone(store_ok))
    }
}
