//! Time that routing adds to a request, for every pick, from 1 to 1,000 upstreams, and the cost of a refusal.
//!
//! `cargo bench -p tidegate --bench routing`
//!
//! Target: a slot is found, reserved and released in under 1 µs at 1,000 upstreams. Each round also hashes a 4 KiB
//! body, as a measure of the machine. Exit code 1 if the target is missed.

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
    for upstreams in [1, 10, 100, 1_000] {
        for pick in Pick::ALL {
            cases.push(Case {
                name: format!("{pick:?}, {upstreams} upstreams"),
                router: router(pick, upstreams, 10),
                judged: upstreams == 1_000,
            });
        }
        cases.push(Case {
            name: format!("all busy: refused, {upstreams} upstreams"),
            router: router(Pick::PowerOfTwo, upstreams, 990),
            judged: false,
        });
    }
    cases
}

/// Upstreams that report this many of a thousand blocks, with a threshold that is checked on each request.
fn router(pick: Pick, upstreams: usize, active: u64) -> PushRouter {
    let thresholds = BusyThresholds {
        active_decode_blocks: Some(0.85),
        active_prefill_tokens: Some(10_000),
        ..BusyThresholds::OFF
    };
    let monitor =
        Arc::new(WorkerMonitor::new(MonitorConfig { thresholds, ..MonitorConfig::default() }));
    for number in 0..upstreams {
        let id = monitor.add_upstream(&format!("upstream-{number}"), None);
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
    for _ in 0..OPERATIONS {
        drop(black_box(router.route(&ask)));
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
