//! What else the machine does meanwhile.

use std::fs;
use std::thread::available_parallelism;
use std::time::Instant;

/// Linux counts processor time for programs in hundredths of a second.
const TICKS_PER_S: f64 = 100.0;

/// Looks at the processors from its start on.
pub struct Watch {
    started: Instant,
    all: f64,
    own: f64,
}

impl Watch {
    pub fn start() -> Self {
        Self { started: Instant::now(), all: all_s(), own: own_s() }
    }

    /// Of all processors, the share that others used since: not this process, nor what it has waited for.
    pub fn others(&self) -> f64 {
        let processors = available_parallelism().map_or(1, usize::from) as f64;
        let had_s = self.started.elapsed().as_secs_f64() * processors;
        let others_s = (all_s() - self.all) - (own_s() - self.own);
        others_s.max(0.0) / had_s.max(1e-3)
    }
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
    let started = Instant::now();
    let mut sum = 0_u64;
    while started.elapsed().as_millis() < 300 {
        sum = std::hint::black_box(sum + 1);
    }
    let others = watch.others();
    assert!((0.0..=1.1).contains(&others), "{others}");
    if fs::exists("/proc/self/stat").unwrap_or(false) {
        assert!(own_s() - watch.own > 0.0 && all_s() > watch.all, "{} {}", own_s(), all_s());
    }
}
