//! Time that the decision adds to a request, from 1 to 1,000 upstreams: a look at the queue, a pick, the limit
//! that is found, and the release; and the cost of a refusal.
//!
//! `cargo bench -p tidegate --bench routing`
//!
//! Target: under 500 ns at 1,000 upstreams, under 1 µs for the pick that compares all. Each round also hashes a
//! 4 KiB body, as a measure of the machine. Exit code 1 if the target is missed.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tidegate::limit::{LimitConfig, UpstreamOutcome};
use tidegate::routing::{
    Ask, Assignment, BusyThresholds, LoadReport, MonitorConfig, Pick, PushRouter, UpstreamLimit,
    WorkerMonitor,
};

const ROUNDS: usize = 21;
const OPERATIONS: u64 = 20_000;
const TARGET_NS: f64 = 500.0;
/// The target of the one pick that compares all upstreams.
const TARGET_ALL_NS: f64 = 1_000.0;
const WAIT_MAX: Duration = Duration::from_secs(5);

struct Case {
    name: String,
    router: PushRouter,
    time: fn(&PushRouter) -> f64,
    target_ns: Option<f64>,
    /// Requests that each upstream has anyway, so that none is idle.
    _held: Vec<Assignment>,
}

fn main() -> ExitCode {
    let cases = cases();
    let mut samples = vec![Vec::new(); cases.len() + 1];
    for _ in 0..ROUNDS {
        for (case, samples) in cases.iter().zip(&mut samples) {
            samples.push((case.time)(&case.router));
        }
        samples[cases.len()].push(time_hash());
    }
    let medians: Vec<_> = samples.iter_mut().map(|samples| median(samples)).collect();
    let yardstick = medians[cases.len()];
    let mut all_hold = true;
    println!("{:<44} {:>8} {:>16} {:>10}", "case", "ns each", "hashes of 4 KiB", "target");
    for (case, ns) in cases.iter().zip(&medians) {
        let holds = case.target_ns.is_none_or(|target_ns| *ns < target_ns);
        all_hold &= holds;
        let verdict = match (case.target_ns, holds) {
            (None, _) => String::new(),
            (Some(target_ns), true) => format!("< {target_ns}  holds"),
            (Some(target_ns), false) => format!("< {target_ns}  MISSED"),
        };
        println!("{:<44} {ns:>8.0} {:>16.2} {verdict:>15}", case.name, ns / yardstick);
    }
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for upstreams in [1, 10, 100, 1_000] {
        for pick in Pick::ALL {
            let monitor = fleet(upstreams, BusyThresholds::OFF, 0);
            let router = PushRouter::new(monitor, pick);
            let even = PushRouter::new(Arc::clone(router.monitor()), Pick::RoundRobin);
            let held = (0..upstreams).filter_map(|_| even.route(&Ask::default()).ok()).collect();
            cases.push(Case {
                name: format!("{pick:?}, {upstreams} upstreams"),
                router,
                time: time_acquire,
                target_ns: (upstreams == 1_000).then_some(match pick {
                    Pick::LeastLoaded => TARGET_ALL_NS,
                    _ => TARGET_NS,
                }),
                _held: held,
            });
        }
        let thresholds = BusyThresholds {
            active_decode_blocks: Some(0.85),
            active_prefill_tokens: Some(10_000),
            ..BusyThresholds::OFF
        };
        for (name, blocks, time) in [
            ("with thresholds", 10, time_acquire as fn(&PushRouter) -> f64),
            ("all busy: refused", 990, time_refusal),
        ] {
            cases.push(Case {
                name: format!("{name}, {upstreams} upstreams"),
                router: PushRouter::new(fleet(upstreams, thresholds, blocks), Pick::PowerOfTwo),
                time,
                target_ns: None,
                _held: Vec::new(),
            });
        }
    }
    cases
}

/// Upstreams whose limit is found, and that report this many of a thousand blocks.
fn fleet(upstreams: usize, thresholds: BusyThresholds, active: u64) -> Arc<WorkerMonitor> {
    let limit = UpstreamLimit::Auto(LimitConfig::default());
    let config = MonitorConfig { thresholds, limit, ..MonitorConfig::default() };
    let monitor = Arc::new(WorkerMonitor::new(config));
    for number in 0..upstreams {
        let id = monitor.add_upstream(&format!("upstream-{number}"), None);
        let report = LoadReport {
            active_decode_blocks: (active > 0).then_some(active),
            kv_total_blocks: (active > 0).then_some(1_000),
            ..LoadReport::default()
        };
        monitor.report(id, 0, report, monitor.now());
    }
    monitor
}

/// Times the whole decision of a request that finds a slot and succeeds.
fn time_acquire(router: &PushRouter) -> f64 {
    let ask = Ask::default();
    let mut cx = Context::from_waker(Waker::noop());
    let start = Instant::now();
    for _ in 0..OPERATIONS {
        // It is ready at once: no request waits.
        match pin!(router.acquire(&ask, WAIT_MAX)).poll(&mut cx) {
            Poll::Ready(Ok(mut assignment)) => {
                assignment.set_outcome(UpstreamOutcome::Success);
                drop(black_box(assignment));
            }
            other => panic!("a slot is free: {other:?}"),
        }
    }
    start.elapsed().as_nanos() as f64 / OPERATIONS as f64
}

fn time_refusal(router: &PushRouter) -> f64 {
    let ask = Ask::default();
    let start = Instant::now();
    for _ in 0..OPERATIONS {
        assert!(black_box(router.route(&ask)).is_err(), "all are busy");
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
