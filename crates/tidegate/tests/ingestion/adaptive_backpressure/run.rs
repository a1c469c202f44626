use super::sender::{Sender, Sent};
use super::sim_store::SimStore;
use std::sync::Arc;
use std::time::Duration;
use tidegate::pipeline::{Pipeline, PipelineConfig, PipelineSnapshot, PipelineView};
use tidegate::tariff::Tariffs;
use tidegate::window::{Stage, WindowConfig};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

/// What was seen of a pipeline every 100 ms, and what was sent to it.
pub struct Seen {
    pub ticks: Vec<Tick>,
    pub sent: Vec<Sent>,
}

pub struct Tick {
    pub at: Duration,
    pub pipeline: Arc<PipelineSnapshot>,
    /// Records that are stored by now.
    pub stored: u64,
}

/// Runs the real pipeline, from bytes to acks, and looks at it all the time. `meanwhile` may do something to the
/// store.
pub async fn run(
    windows: WindowConfig,
    store: &Arc<SimStore>,
    senders: Vec<Sender>,
    time: Duration,
    meanwhile: impl Future<Output = ()>,
) -> Seen {
    let config = PipelineConfig { windows, ..PipelineConfig::default() };
    let (pipeline, front, back) =
        Pipeline::new(config, Arc::clone(store), Arc::new(Tariffs::none())).unwrap();
    let (view, mut ticks) = (pipeline.view(), Vec::new());
    let entrance = pipeline.into_entrance();
    let mut sending = JoinSet::new();
    for sender in senders {
        sending.spawn(sender.run(entrance.clone(), time));
    }
    // It ends by itself: once all entrances are gone, and all is stored.
    drop(entrance);
    let work = async {
        let stages = (tokio::spawn(front.run()), tokio::spawn(back.run()));
        let (sent, ()) = tokio::join!(sending.join_all(), meanwhile);
        stages.0.await.unwrap();
        stages.1.await.unwrap();
        sent
    };
    let sent = tokio::select! {
        sent = work => sent,
        () = watch(&view, store, &windows, &mut ticks) => unreachable!("it looks for ever"),
    };
    Seen { ticks, sent }
}

async fn watch(
    view: &PipelineView,
    store: &SimStore,
    windows: &WindowConfig,
    ticks: &mut Vec<Tick>,
) {
    let (start, mut looks) = (Instant::now(), interval(windows.delta));
    loop {
        looks.tick().await;
        let pipeline = view.snapshot();
        let (held, budget) = (pipeline.memory_bytes, pipeline.budget_bytes);
        assert!(held <= budget, "{held} bytes of {budget} after {:?}", start.elapsed());
        for stage in &pipeline.stages {
            let bounds = windows.window_min..=windows.window_max;
            assert!(bounds.contains(&stage.window), "{stage:?}");
        }
        ticks.push(Tick { at: start.elapsed(), pipeline, stored: store.records() });
    }
}

impl Seen {
    /// Zero drops: all that was sent was acknowledged, and is stored once.
    pub fn assert_nothing_lost(&self, store: &SimStore) {
        for sent in &self.sent {
            assert_eq!(sent.rejects, [], "{} had batches refused", sent.name);
            let (counted, twice) = store.counted(&sent.name);
            assert_eq!(counted, sent.batches, "batches of {}", sent.name);
            assert!(!twice, "a batch of {} counted twice", sent.name);
            assert!(sent.batches > 0, "{} sent nothing", sent.name);
        }
        assert_eq!(store.records(), self.sent.iter().map(|sent| sent.records).sum::<u64>());
    }

    pub fn between(&self, from_s: u64, until_s: u64) -> impl Iterator<Item = &Tick> {
        let (from, until) = (Duration::from_secs(from_s), Duration::from_secs(until_s));
        self.ticks.iter().filter(move |tick| (from..until).contains(&tick.at))
    }

    /// Of the ticks at which one of these stages was backlogged, the share in the band.
    pub fn in_band(&self, stages: &[Stage], windows: &WindowConfig) -> f64 {
        let band = windows.occupancy_low - 1e-9..=windows.occupancy_high + 1e-9;
        let (mut backlogged, mut inside) = (0, 0);
        for tick in &self.ticks {
            for stage in stages.iter().map(|stage| &tick.pipeline.stages[stage.index()]) {
                if stage.waiting_senders > 0 || stage.queued >= windows.backlog_min() {
                    backlogged += 1;
                    inside += u32::from(band.contains(&stage.occupancy));
                }
            }
        }
        assert!(backlogged > 0, "{stages:?} never were backlogged");
        f64::from(inside) / f64::from(backlogged)
    }

    /// When the windows of all stages, each over 5 s, came within 30 % of where they are in the last third of the
    /// time, and stayed. One that is cut for once and comes back is not elsewhere.
    pub fn converged_after(&self, until_s: u64) -> Duration {
        let mean = |stage: Stage, from: Duration, until: Duration| {
            let ticks = self.ticks.iter().filter(|tick| (from..until).contains(&tick.at));
            let windows = ticks.map(|tick| tick.pipeline.stages[stage.index()].window as f64);
            let (sum, count) =
                windows.fold((0.0, 0.0), |(sum, count), window| (sum + window, count + 1.0));
            sum / count
        };
        let (smooth, until) = (Duration::from_secs(5), Duration::from_secs(until_s));
        let mut converged = Duration::ZERO;
        for stage in Stage::ALL {
            let end = mean(stage, until * 2 / 3, until);
            let is_far = |at: &Duration| (mean(stage, *at, *at + smooth) / end - 1.0).abs() > 0.3;
            let starts = (0..=until_s - smooth.as_secs()).map(Duration::from_secs);
            converged = converged.max(starts.filter(is_far).max().unwrap_or_default());
        }
        converged
    }

    /// Records that were stored a second.
    pub fn rate(&self, from_s: u64, until_s: u64) -> f64 {
        let first = self.between(from_s, until_s).next().unwrap();
        let last = self.between(from_s, until_s).last().unwrap();
        (last.stored - first.stored) as f64 / (last.at - first.at).as_secs_f64()
    }

    /// How it went, second by second, for who looks into a failure.
    pub fn story(&self) -> String {
        let second = |tick: &&Tick| tick.at.as_millis() % 1_000 < 100;
        let row = |tick: &Tick| {
            let stages = tick.pipeline.stages.iter().map(|stage| {
                let waits = if stage.waiting_senders > 0 { "w" } else { "" };
                format!("{}/{}{waits} {}", stage.queued, stage.window, stage.cause)
            });
            let stages: Vec<_> = stages.collect();
            let level = tick.pipeline.signal.level.name();
            format!(
                "{:>6.1} {level} {} {}\n",
                tick.at.as_secs_f64(),
                tick.stored,
                stages.join(" | ")
            )
        };
        self.ticks.iter().filter(second).map(row).collect()
    }
}
