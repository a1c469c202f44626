//! Gives requests to workers that have room, and refuses when none has.
//!
//! Run with `cargo run -p tidegate --example router`.

use std::sync::Arc;
use std::time::Duration;
use tidegate::routing::{
    Answer, Ask, BusyPreset, Charge, LoadReport, MonitorConfig, Pick, PushRouter, WorkerMonitor,
};

fn main() {
    let thresholds = BusyPreset::Latency.thresholds();
    let monitor =
        Arc::new(WorkerMonitor::new(MonitorConfig { thresholds, ..MonitorConfig::default() }));
    let workers = ["gpu-1:8000", "gpu-2:8000"].map(|name| monitor.add_worker(name, None));
    let router = PushRouter::new(Arc::clone(&monitor), Pick::PowerOfTwo);

    // Workers say how full they are: by an agent, a scrape or a header of their answers.
    for (worker, active) in workers.into_iter().zip([640, 690]) {
        let report = LoadReport {
            active_decode_blocks: Some(active),
            kv_total_blocks: Some(1000),
            ..LoadReport::default()
        };
        monitor.report(worker, 0, report, monitor.now());
    }

    let ask = Ask { charge: Charge::new(10, 160), ..Ask::default() };
    let mut under_way = Vec::new();
    for number in 1_u64.. {
        // Any random number will do; this one is the same in every run.
        let chance = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        match router.route(&ask, chance) {
            Ok(mut place) => {
                println!("request {number} goes to {}", place.worker().name());
                // It is sent; its answer begins; it is over when the place is dropped.
                place.sent(monitor.now());
                place.answered(Answer::Began(Duration::from_millis(80)), monitor.now());
                place.prefilled();
                under_way.push(place);
            }
            Err(refused) => {
                println!("request {number} is refused: {refused}");
                break;
            }
        }
    }
    under_way.pop();
    let after = if router.route(&ask, 7).is_ok() { "goes through" } else { "is refused" };
    println!("after one of them ended, the next one {after}");
}
