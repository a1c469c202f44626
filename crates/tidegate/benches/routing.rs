//! What routing adds to a request, for every pick, from 1 to 1,000 workers, and what a refusal costs.
//!
//! `cargo bench -p tidegate --bench routing`
//!
//! The target is that a place is found, taken and given back in under a microsecond at 1,000 workers. Beside it in
//! every round stands a hash of a 4 KiB body, as a measure of the machine. Exit code 1 if the target is missed.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tidegate::routing::{
    Ask, BusyThresholds, LoadReport, MonitorConfig, Pick, PushRouter, WorkerMonitor,
};

const ROUNDS: usize = 21;
const OPERATIONS: u64 = 20_000;
const TARGET_NS: f64 = 1_000.0;

struct Case {
    name: String,
    router: PushRouter,
    /// Whether the target binds it.
    judged: bool,
}

fn main() -> ExitCode {
    let cases = cases();
    let mut samples = vec![Vec::new(); cases.len() + 1];
    for _ in 0..ROUNDS {
        for (case, samples) in cases.iter().zip(&mut samples) {
            samples.push(time(&case.router));
        }
        samples[cases.len()].push(time_hash());
    }
    let medians: Vec<_> = samples.iter_mut().map(|samples| median(samples)).collect();
    let yardstick = medians[cases.len()];
    let mut all_hold = true;
    println!(
        "{:<34} {:>10} {:>16} {:>10}",
        "route and release", "ns each", "hashes of 4 KiB", "target"
    );
    for (case, ns) in cases.iter().zip(&medians) {
        let holds = *ns < TARGET_NS;
        all_hold &= holds || !case.judged;
        let verdict = match (case.judged, holds) {
            (false, _) => "",
            (true, true) => "< 1 µs  holds",
            (true, false) => "< 1 µs  MISSED",
        };
        println!("{:<34} {ns:>10.0} {:>16.2} {verdict:>15}", case.name, ns / yardstick);
    }
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for workers in [1, 10, 100, 1_000] {
        for pick in Pick::ALL {
            cases.push(Case {
                name: format!("{pick:?}, {workers} workers"),
                router: router(pick, workers, 10),
                judged: workers == 1_000,
            });
        }
        cases.push(Case {
            name: format!("all busy: refused, {workers} workers"),
            router: router(Pick::PowerOfTwo, workers, 990),
            judged: false,
        });
    }
    cases
}

/// Workers that report this many of a thousand blocks, with a threshold that is checked on each request.
fn router(pick: Pick, workers: usize, active: u64) -> PushRouter {
    let thresholds = BusyThresholds {
        active_decode_blocks: Some(0.85),
        active_prefill_tokens: Some(10_000),
        ..BusyThresholds::OFF
    };
    let monitor =
        Arc::new(WorkerMonitor::new(MonitorConfig { thresholds, ..MonitorConfig::default() }));
    for number in 0..workers {
        let id = monitor.add_worker(&format!("worker-{number}"), None);
        let report = LoadReport {
            active_decode_blocks: Some(active),
            kv_total_blocks: Some(1_000),
            ..LoadReport::default()
        };
        monitor.report(id, 0, report, monitor.now());
    }
    PushRouter::new(monitor, pick)
}

fn time(router: &PushRouter) -> f64 {
    let ask = Ask::default();
    let start = Instant::now();
    for number in 0..OPERATIONS {
        drop(black_box(router.route(&ask, number.wrapping_mul(0x9E37_79B9_7F4A_7C15))));
    }
    start.elapsed().as_nanos() as f64 / OPERATIONS as f64
}

fn time_hash() -> f64 {
    let (state, body) = (RandomState::new(), vec![7_u8; 4096]);
    let start = Instant::now();
    for _ in 0..OPERATIONS / 10 {
        black_box(state.hash_one(black_box(&body)));
    }
    start.elapsed().as_nanos() as f64 / (OPERATIONS / 10) as f64
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
