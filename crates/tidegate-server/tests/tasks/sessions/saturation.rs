//! A manager that gets more updates than it can take.

use super::bed::{Bed, BedSettings, until};
use super::flood::{EncodedFrames, Flood, FloodFrames};
use super::peer_worker::{PeerWorker, Told, update};
use crate::folder::TempFolder;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate::MessageClass;
use tidegate::signal::BackpressureLevel::Reject;
use tidegate::task::TaskStatus;
use tidegate_server::tasks::manager::WorkerHub;
use tidegate_server::tasks::session::AnswerResult;
use tokio::time::{Instant, sleep, sleep_until};

/// Updates that may wait at a saturated manager, and of each frame of a flood: the first frame after a turn of the
/// consumer fills the buffer again, and the frames of all others find it full.
const UPDATES_MAX: usize = 512;
const FRAMES: FloodFrames = FloodFrames { batches: 1, updates: UPDATES_MAX, debugs: 1 };
const WORKERS: usize = 96;

/// The seed's test: a manager under 10,000 updates a second.
#[test]
fn ad32_a_manager_flooded_with_updates_sheds_low_and_keeps_critical() {
    let folder = TempFolder::new("saturated-shed");
    let bed = Bed::start(&folder, BedSettings::default());
    // Updates that come alone, and more telemetry than data.
    let frames = FloodFrames { batches: 64, updates: 1, debugs: 8 }.of_workers(32);
    bed.run(async {
        let flood = Flood::start(bed.address, &frames).await;
        let mut peer = PeerWorker::join(bed.address, "p1", 1, 1).await;
        let began = Instant::now();
        let mut ends = 0;
        let shed = || bed.hub().list().stats_buffer.admission.low_shed;
        while began.elapsed() < Duration::from_secs(2) || ends < 5 || shed() == 0 {
            let id = bed.submit(&format!("t{ends}"), "x").await;
            assert_eq!(peer.accept().await, id.as_str());
            peer.send(vec![update(id.as_str(), "succeeded", "out\n", None)], false).await;
            assert_eq!(bed.until_over(&id).await.status, TaskStatus::Succeeded);
            peer.report().await;
            ends += 1;
        }
        let (took, updates) = (began.elapsed(), flood.updates());
        let buffer = bed.hub().list().stats_buffer;
        flood.stop().await;
        let rate = (updates * 9) as f64 / took.as_secs_f64();
        println!("{rate:.0} frames/s in {took:?}; {ends} tasks; {buffer:?}");
        let admission = &buffer.admission;
        assert!(admission.low_shed > 0, "the tracker sheds telemetry");
        // Telemetry first: a smaller part of the data is shed, if any.
        let part = |shed: u64, acquired: u64| shed as f64 / (shed + acquired).max(1) as f64;
        let low = part(admission.low_shed, admission.low_acquired);
        let normal = part(admission.normal_shed, admission.normal_acquired);
        assert!(normal < low, "{normal} of data, {low} of telemetry");
        assert!(admission.critical_acquired > 32, "joins are critical");
        assert_eq!((admission.critical_shed, admission.high_shed), (0, 0));
        assert_eq!((buffer.totals.dropped[0], buffer.totals.dropped[1]), (0, 0));
    });
}

/// Times of each task of a measurement.
#[derive(Debug, Default)]
struct Times {
    /// From a submission to its dispatch.
    dispatches: Vec<Duration>,
    /// From a cancellation to its arrival.
    cancels: Vec<Duration>,
    /// Between two renewals.
    renewals: Vec<Duration>,
    /// From the report of an end on the data lane to the end of its task.
    ends: Vec<Duration>,
    /// Batches of others that were acknowledged meanwhile.
    before_ends: Vec<u64>,
}

/// Time between two tasks: the same with load and without, longer than an end takes with it. What has paused is
/// slower.
const CYCLE: Duration = Duration::from_millis(400);

/// Measures for so long, at least three times, with a worker that acts at once.
async fn measure(
    bed: &Bed,
    peer: &mut PeerWorker,
    (name, time): (&str, Duration),
    acked: impl Fn() -> u64,
) -> Times {
    let Times { mut dispatches, mut cancels, mut renewals, mut ends, mut before_ends } =
        Times::default();
    let mut renewed = None::<Instant>;
    let began = Instant::now();
    while began.elapsed() < time || renewals.len() < 3 || dispatches.len() < 3 {
        let (cycle, id) = (Instant::now() + CYCLE, format!("{name}{}", dispatches.len()));
        let mut at = Instant::now();
        let task = bed.submit(&id, "x").await;
        let key = format!("{id}@1");
        loop {
            match peer.told().await.unwrap() {
                Told::Execute(_) => {
                    dispatches.push(at.elapsed());
                    peer.answer(vec![(key.clone(), AnswerResult::Started { fence: 1 })]).await;
                    at = Instant::now();
                    bed.handle.cancel(&task).await.unwrap();
                }
                Told::Cancel(_) => {
                    cancels.push(at.elapsed());
                    peer.answer(vec![(key.clone(), AnswerResult::Cancelled)]).await;
                    break;
                }
                Told::Lease(_) => {
                    let now = Instant::now();
                    renewals.extend(renewed.replace(now).map(|before| now - before));
                    peer.report().await;
                }
            }
        }
        let (sent, before) = (Instant::now(), acked());
        peer.send(vec![update(&id, "cancelled", "", None)], true).await;
        let mut take_renewal = |now| {
            renewals.extend(renewed.replace(now).map(|before| now - before));
        };
        let over = meanwhile(peer, bed.until_over(&task), &mut take_renewal).await;
        assert_eq!(over.status, TaskStatus::Cancelled);
        ends.push(sent.elapsed());
        before_ends.push(acked() - before);
        peer.report().await;
        meanwhile(peer, sleep_until(cycle), &mut take_renewal).await;
    }
    Times { dispatches, cancels, renewals, ends, before_ends }
}

fn median<T: Ord + Copy>(values: impl IntoIterator<Item = T>) -> T {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort();
    values[values.len() / 2]
}

/// Awaits something while a worker answers renewals.
async fn meanwhile<T>(
    peer: &mut PeerWorker,
    work: impl Future<Output = T>,
    mut renewed: impl FnMut(Instant),
) -> T {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return done,
            told = peer.told() => match told.unwrap() {
                Told::Lease(_) => {
                    renewed(Instant::now());
                    peer.report().await;
                }
                other => panic!("{other:?}"),
            },
        }
    }
}

/// Readings of the level, and those that were REJECT. On another thread than what is measured: a reading takes
/// longer than a dispatch.
async fn watch_level(hub: Arc<WorkerHub>, readings: Arc<[AtomicU64; 2]>) {
    loop {
        let level = hub.list().stats_buffer.level;
        readings[0].fetch_add(1, Ordering::SeqCst);
        readings[1].fetch_add(u64::from(level == Reject), Ordering::SeqCst);
        sleep(Duration::from_millis(20)).await;
    }
}

/// One round: times without load, beside another manager that has the load, and with it; all a moment apart,
/// because the machine is others' too.
struct Round {
    unloaded: Times,
    beside: Times,
    loaded: Times,
    /// Readings of the level with load, and those that were REJECT.
    readings: [u64; 2],
}

/// A saturated manager, and another one on the same machine.
struct Saturated {
    bed: Bed,
    elsewhere: Bed,
    frames: EncodedFrames,
}

// === impl Saturated ===

impl Saturated {
    async fn round(&self, peer: &mut PeerWorker, number: usize, time: Duration) -> Round {
        let (bed, short) = (&self.bed, 4 * CYCLE);
        let name = |what: &str| format!("{what}{number}-");
        let unloaded = measure(bed, peer, (&name("free"), short), || 0).await;
        let start = Flood::start(self.elsewhere.address, &self.frames);
        let flood = meanwhile(peer, start, drop).await;
        let beside = measure(bed, peer, (&name("beside"), short), || 0).await;
        meanwhile(peer, flood.stop(), drop).await;
        let start = async {
            let flood = Flood::start(bed.address, &self.frames).await;
            until(|| bed.hub().list().stats_buffer.level == Reject).await;
            flood
        };
        let flood = meanwhile(peer, start, drop).await;
        let readings = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let name = name("loaded");
        let watching = watch_level(Arc::clone(bed.hub()), Arc::clone(&readings));
        let watching = tokio::spawn(watching);
        let loaded = measure(bed, peer, (&name, time), || flood.acks()[0]).await;
        watching.abort();
        let [all, rejects] = [0, 1].map(|at| readings[at].load(Ordering::SeqCst));
        let (updates, [acks, told]) = (flood.updates(), flood.acks());
        meanwhile(peer, flood.stop(), drop).await;
        println!("REJECT in {rejects} of {all} readings, {told} of {acks} acks; {updates} updates");
        Round { unloaded, beside, loaded, readings: [all, rejects] }
    }
}

/// Ratio of a time with load to the one without, each in the median of all rounds.
fn ratio(rounds: &[Round], what: &str, time: impl Fn(&Times) -> &Vec<Duration>) -> f64 {
    let of = |times: fn(&Round) -> &Times| {
        median(rounds.iter().flat_map(|round| time(times(round))).copied())
    };
    let unloaded = of(|round| &round.unloaded);
    let beside = of(|round| &round.beside);
    let loaded = of(|round| &round.loaded);
    println!("{what}: {unloaded:?}; {beside:?} beside a loaded manager; {loaded:?} with load");
    loaded.as_secs_f64() / unloaded.max(beside).as_secs_f64()
}

/// A folder in memory, where the system has that: a disk that others write to would be measured too.
fn in_memory(name: &str) -> TempFolder {
    match Path::new("/dev/shm") {
        memory if memory.is_dir() => TempFolder::within(memory, name),
        _ => TempFolder::new(name),
    }
}

/// Four seconds in the last of three rounds; `TIDEGATE_SATURATED_S` says how many, and `make soak` says 60.
#[test]
fn ad37_a_manager_at_reject_dispatches_cancels_and_renews_as_without_load() {
    let seconds = std::env::var("TIDEGATE_SATURATED_S").ok().and_then(|text| text.parse().ok());
    let time = Duration::from_secs(seconds.unwrap_or(4));
    let folders = ["saturated-reject", "saturated-elsewhere"].map(in_memory);
    let lease = Duration::from_secs(3);
    let [bed, elsewhere] = [0, 1].map(|at| {
        let updates_max = UPDATES_MAX as u64;
        Bed::start(&folders[at], BedSettings { lease, updates_max, ..BedSettings::default() })
    });
    let saturated = Saturated { bed, elsewhere, frames: FRAMES.of_workers(WORKERS) };
    // Three rounds of starting and stopping a flood twice take half a minute, and longer on a busy machine.
    saturated.bed.run_for(2 * time + Duration::from_secs(60), async {
        let bed = &saturated.bed;
        let mut peer = PeerWorker::join(bed.address, "p1", 1, 1).await;
        bed.until_up("p1").await;
        let mut rounds = Vec::new();
        for (number, time) in [4 * CYCLE, 4 * CYCLE, time].into_iter().enumerate() {
            rounds.push(saturated.round(&mut peer, number, time).await);
        }
        assert_eq!(bed.hub().list().stats_buffer.totals.dropped[MessageClass::Control.index()], 0);
        let [all, rejects] =
            [0, 1].map(|at| rounds.iter().map(|round| round.readings[at]).sum::<u64>());
        assert!(rejects * 100 >= all * 95, "REJECT in {rejects} of {all} readings");
        let ratios = [
            ratio(&rounds, "dispatch", |times| &times.dispatches),
            ratio(&rounds, "cancellation", |times| &times.cancels),
            ratio(&rounds, "renewal", |times| &times.renewals),
        ];
        println!("{ratios:.2?} of the time without load");
        assert!(ratios.iter().all(|ratio| *ratio <= 2.0), "{ratios:.2?}");
        ratio(&rounds, "end", |times| &times.ends);
        // An end shares the thread of data: it waits for a turn of each other connection, and no longer.
        let before = rounds.iter().flat_map(|round| round.loaded.before_ends.iter().copied());
        let before = median(before);
        assert!(before <= 3 * WORKERS as u64, "{before} batches of others before an end");
        let longest = rounds.iter().filter_map(|round| round.loaded.renewals.iter().max()).max();
        assert!(longest.is_some_and(|longest| *longest < lease), "{longest:?}: a lease would end");
    });
}
