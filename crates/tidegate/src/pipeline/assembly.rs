use super::common::Common;
use super::config::{PipelineConfig, PipelineConfigError};
use super::entrance::Entrance;
use super::item::{Chunk, Parsed, Piece, Priced};
use super::measure::regulator::{Probe, Regulator, window};
use super::stages::{Accept, Evaluate, Parse, Reassemble, Relay, StoreStage};
use super::view::PipelineView;
use crate::channel::{Weigh, WindowedReceiver, WindowedSender, windowed};
use crate::store::Store;
use std::sync::Arc;
use tidegate_core::signal::LevelGauge;
use tidegate_core::tariff::{Evaluator, Tariffs};
use tidegate_core::window::{AdaptiveScheduler, Grant, Stage};

/// A pipeline, from where bytes go in to where it can be watched. [`Front`] and [`Back`] do the work, on whatever
/// threads they are run.
#[derive(Debug)]
pub struct Pipeline {
    entrance: Entrance,
    view: PipelineView,
}

/// The stages Accept, Reassemble and Parse. One of them waits for the other two seldom: they may share a thread.
pub struct Front {
    accept: Relay<Accept>,
    reassemble: Relay<Reassemble>,
    parse: Relay<Parse>,
}

/// The stages Evaluate and Store, and what moves the windows of all.
pub struct Back<S> {
    evaluate: Evaluate<S>,
    store_stage: StoreStage<S>,
    regulator: Regulator,
}

// === impl Pipeline ===

impl Pipeline {
    /// A pipeline that prices by these tariffs and writes to this store. Nothing moves before [`Front::run`] and
    /// [`Back::run`] do.
    ///
    /// # Errors
    ///
    /// When the configuration is out of its ranges.
    pub fn new<S: Store>(
        config: PipelineConfig,
        store: Arc<S>,
        tariffs: Arc<Tariffs>,
    ) -> Result<(Self, Front, Back<S>), PipelineConfigError> {
        config.frames.validate()?;
        config.lines.validate()?;
        let scheduler = AdaptiveScheduler::new(config.windows, config.law)?;
        let levels = LevelGauge::new(config.levels)?;
        let common = Common::new(&levels);
        let [accept, reassemble, parse, evaluate, store_grant] = *scheduler.grants();
        let (chunks, accepting) = stage::<Chunk>(&accept);
        let (accepted, reassembling) = stage::<Chunk>(&reassemble);
        let (pieces, parsing) = stage::<Piece>(&parse);
        let (parsed, evaluating) = stage::<Parsed>(&evaluate);
        let (priced, storing) = stage::<Priced>(&store_grant);
        let probes = [
            accepting.gauge(),
            reassembling.gauge(),
            parsing.gauge(),
            evaluating.gauge(),
            storing.gauge(),
        ]
        .map(Probe::new);
        let meter = |stage: Stage| Arc::clone(&probes[stage.index()].meter);
        let meters = |stage: Stage, next: Stage| (meter(stage), meter(next));
        let front = Front {
            accept: Relay::new(
                common.accept(),
                accepting,
                accepted,
                meters(Stage::Accept, Stage::Reassemble),
            ),
            reassemble: Relay::new(
                common.reassemble(&config),
                reassembling,
                pieces,
                meters(Stage::Reassemble, Stage::Parse),
            ),
            parse: Relay::new(
                common.parse(&config),
                parsing,
                parsed,
                meters(Stage::Parse, Stage::Evaluate),
            ),
        };
        let evaluator = Evaluator::new(tariffs);
        let evaluate = common.evaluate(
            (evaluating, priced),
            meters(Stage::Evaluate, Stage::Store),
            &store,
            evaluator,
        );
        let store_stage = common.store_stage(storing, meter(Stage::Store), store, config.frames);
        let accept_meter = meter(Stage::Accept);
        let regulator = common.regulator(scheduler, levels, probes);
        let entrance = Entrance::new(chunks, common.signal, accept_meter);
        let view = PipelineView { counters: common.counters, snapshot: regulator.snapshot() };
        Ok((Self { entrance, view }, front, Back { evaluate, store_stage, regulator }))
    }

    /// Where bytes go in. The pipeline ends when all entrances are gone, this one included.
    #[must_use]
    pub fn into_entrance(self) -> Entrance {
        self.entrance
    }

    /// Read access to counts and measurements.
    #[must_use]
    pub fn view(&self) -> PipelineView {
        self.view.clone()
    }
}

fn stage<T: Weigh>(grant: &Grant) -> (WindowedSender<T>, WindowedReceiver<T>) {
    windowed(window(grant))
}

// === impl Front ===

impl Front {
    /// Runs the stages until every [`Entrance`] is gone and all that came is handed on.
    pub async fn run(self) {
        tokio::join!(self.accept.run(), self.reassemble.run(), self.parse.run());
    }
}

// === impl Back ===

impl<S: Store> Back<S> {
    /// Runs the stages until the front is gone and all that it handed on is durable.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, what was not acknowledged may be stored or not; its senders will send it again.
    pub async fn run(self) {
        tokio::select! {
            ((), ()) = async { tokio::join!(self.evaluate.run(), self.store_stage.run()) } => {}
            () = self.regulator.run() => {}
        }
    }
}
