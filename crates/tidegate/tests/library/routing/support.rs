use std::sync::Arc;
use std::time::Duration;
use tidegate::routing::{
    Ask, Assignment, BusyThresholds, LoadReport, MonitorConfig, Pick, PushRouter, RouteError,
    UpstreamId, WorkerMonitor,
};

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn kv(active: u64, total: u64) -> LoadReport {
    LoadReport {
        active_decode_blocks: Some(active),
        kv_total_blocks: Some(total),
        ..LoadReport::default()
    }
}

pub fn blocks(ratio: f64) -> BusyThresholds {
    BusyThresholds { active_decode_blocks: Some(ratio), ..BusyThresholds::OFF }
}

pub fn requests(most: u64) -> BusyThresholds {
    BusyThresholds { active_requests: Some(most), ..BusyThresholds::OFF }
}

/// A router over some upstreams that serve anything.
pub fn router(
    pick: Pick,
    thresholds: BusyThresholds,
    upstreams: usize,
) -> (Arc<PushRouter>, Vec<UpstreamId>) {
    let config = MonitorConfig { thresholds, ..MonitorConfig::default() };
    let monitor = Arc::new(WorkerMonitor::new(config));
    let name = |number| format!("upstream-{number}");
    let ids = (0..upstreams).map(|number| monitor.add_upstream(&name(number), None)).collect();
    (Arc::new(PushRouter::new(monitor, pick)), ids)
}

/// Routes until nobody has room, at one moment.
pub fn fill(router: &PushRouter, now: Duration) -> Vec<Assignment> {
    let mut held = Vec::new();
    for chance in 0..10_000 {
        match router.route_at(&Ask::default(), chance, now) {
            Ok(mut assignment) => {
                assignment.sent(now);
                held.push(assignment);
            }
            Err(RouteError::Overloaded(_)) => return held,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("never full");
}
