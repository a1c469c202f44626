//! Routes requests to upstreams that have room, and refuses when none has.
//!
//! Run with `cargo run -p tidegate --example router`.

use std::sync::Arc;
use std::time::Duration;
use tidegate::routing::{
    Answer, Ask, BusyPreset, Charge, LoadReport, MonitorConfig, Pick, PushRouter, WorkerMonitor,
};

pub(crate) fn main() {
    let thresholds = BusyPreset::Latency.thresholds();
    let monitor =
        Arc::new(WorkerMonitor::new(MonitorConfig { thresholds, ..MonitorConfig::default() }));
    let upstreams = ["gpu-1:8000", "gpu-2:8000"].map(|name| monitor.add_upstream(name, None));
    let router = PushRouter::new(Arc::clone(&monitor), Pick::PowerOfTwo);

    // Upstreams report their load: by an agent, a scrape or a response header.
    for (upstream, active) in upstreams.into_iter().zip([640, 690]) {
        let report = LoadReport {
            active_decode_blocks: Some(active),
            kv_total_blocks: Some(1000),
            ..LoadReport::default()
        };
        monitor.report(upstream, 0, report, monitor.now());
    }

    let ask = Ask { charge: Charge::new(10, 160), ..Ask::default() };
    let mut under_way = Vec::new();
    for number in 1_u64.. {
        match router.route(&ask) {
            Ok(mut slot) => {
                println!("request {number} goes to {}", slot.upstream().name());
                // It is sent; its answer begins; it is over when the slot is dropped.
                slot.sent(monitor.now());
                slot.answered(Answer::Began(Duration::from_millis(80)), monitor.now());
                slot.prefilled();
                under_way.push(slot);
            }
            Err(refused) => {
                println!("request {number} is refused: {refused}");
                break;
            }
        }
    }
    under_way.pop();
    let after = if router.route(&ask).is_ok() { "goes through" } else { "is refused" };
    println!("after one of them ended, the next request {after}");
}
