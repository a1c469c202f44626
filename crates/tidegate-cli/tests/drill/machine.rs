//! Load of the machine during a drill.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, available_parallelism};
use std::time::{Duration, Instant};

/// Linux counts processor time for programs in hundredths of a second.
const TICKS_PER_S: f64 = 100.0;

/// Sleep of a canary.
const NAP: Duration = Duration::from_millis(5);

/// Watches CPU usage, also with canaries: one sleeping thread per CPU, which oversleeps when threads wait for
/// CPUs.
pub struct Watch {
    started: Instant,
    all: f64,
    own: f64,
    over: Arc<AtomicBool>,
    canaries: Vec<JoinHandle<Duration>>,
}

/// Observed load of the machine.
pub struct Seen {
    /// Share of all CPUs that other processes used.
    pub others: f64,
    /// Longest oversleep of a canary.
    pub stall: Duration,
}

impl Watch {
    pub fn start() -> Self {
        let over: Arc<AtomicBool> = Arc::default();
        let canary = |_| {
            let over = Arc::clone(&over);
            thread::spawn(move || overslept(&over, thread::sleep))
        };
        let canaries = (0..processors()).map(canary).collect();
        Self { started: Instant::now(), all: all_s(), own: own_s(), over, canaries }
    }

    pub fn end(self) -> Seen {
        let had_s = self.started.elapsed().as_secs_f64() * processors() as f64;
        let others_s = (all_s() - self.all) - (own_s() - self.own);
        self.over.store(true, Ordering::Relaxed);
        let stalls = self.canaries.into_iter().map(|canary| canary.join().unwrap_or_default());
        Seen {
            others: others_s.max(0.0) / had_s.max(1e-3),
            stall: stalls.max().unwrap_or_default(),
        }
    }
}

fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Sleeps again and again until it is over; the longest that one sleep took more than it should.
fn overslept(over: &AtomicBool, sleep: impl Fn(Duration)) -> Duration {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let asleep = Instant::now();
        sleep(NAP);
        longest = longest.max(asleep.elapsed().saturating_sub(NAP));
    }
    longest
}

/// Seconds that all processors were used; 0 on a system that does not say.
fn all_s() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let ticks = line.split_whitespace().skip(1).take(8).enumerate();
    // The fourth and the fifth are idle, and idle for the disk.
    let used = ticks
        .filter(|(at, _)| !matches!(at, 3 | 4))
        .filter_map(|(_, text)| text.parse::<f64>().ok());
    used.sum::<f64>() / TICKS_PER_S
}

/// Seconds that this process used, and those of its children that it has waited for.
fn own_s() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which may have spaces and brackets in it: of these fields the state is the first.
    let fields = text.rsplit_once(')').map_or("", |(_, fields)| fields);
    let times = fields.split_whitespace().skip(11).take(4);
    times.filter_map(|text| text.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_S
}

#[test]
fn what_others_use_is_told_from_ones_own() {
    let watch = Watch::start();
    let (started, all, own) = (Instant::now(), watch.all, watch.own);
    let mut sum = 0_u64;
    while started.elapsed().as_millis() < 300 {
        sum = std::hint::black_box(sum + 1);
    }
    let others = watch.end().others;
    assert!((0.0..=1.1).contains(&others), "{others}");
    if fs::exists("/proc/self/stat").unwrap_or(false) {
        assert!(own_s() - own > 0.0 && all_s() > all, "{} {}", own_s(), all_s());
    }
}

#[test]
fn who_is_kept_from_running_is_seen_to_be() {
    let (over, held_up) = (AtomicBool::new(false), Duration::from_millis(60));
    let longest = overslept(&over, |nap| {
        // Only this once.
        over.store(true, Ordering::Relaxed);
        thread::sleep(nap + held_up);
    });
    assert!(longest >= held_up, "{longest:?}");
}
