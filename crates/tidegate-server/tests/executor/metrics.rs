//! Series of `/metrics`.

use crate::support::{TestWorker, code};
use serde_json::json;
use tidegate_testkit::promtool::{Verdict, check_metrics};

#[tokio::test]
async fn series_for_alerts_exist_and_are_well_formed() {
    let worker = TestWorker::start(2);
    let fresh = String::from_utf8(worker.get("/metrics").await.body.to_vec()).unwrap();
    assert!(fresh.contains("tidegate_worker_refused_total{reason=\"full\"} 0\n"), "{fresh}");
    worker.execute(code("good", "sleep 1ms")).await.ok();
    worker.execute(code("good", "sleep 1ms")).await.ok();
    worker.ended("good").await;
    worker.execute(code("bad", "fail 1")).await.ok();
    worker.ended("bad").await;
    worker.execute(code("runs", "hang")).await.ok();
    worker.reserve(json!({"eval_id": "kept", "ttl": 60})).await.ok();
    worker.execute(code("late", "hang")).await.refused(503, "full");
    worker.execute(code("runs", "other")).await.refused(409, "conflict");
    let page = String::from_utf8(worker.get("/metrics").await.body.to_vec()).unwrap();
    for line in [
        "tidegate_worker_slots 2",
        "tidegate_worker_running 1",
        "tidegate_worker_reserved 1",
        "tidegate_worker_draining 0",
        "tidegate_worker_started_total 3",
        "tidegate_worker_repeated_total 1",
        "tidegate_worker_executions_total{outcome=\"succeeded\",reason=\"exit\"} 1",
        "tidegate_worker_executions_total{outcome=\"failed\",reason=\"exit\"} 1",
        "tidegate_worker_refused_total{reason=\"full\"} 1",
        "tidegate_worker_refused_total{reason=\"conflict\"} 1",
        "tidegate_worker_reservations_total 1",
        "tidegate_worker_reservations_expired_total 0",
        "tidegate_worker_leases_expired_total 0",
    ] {
        assert!(page.contains(&format!("{line}\n")), "{line} is not in:\n{page}");
    }
    let Verdict { code, complaints } = check_metrics(&page).unwrap();
    assert_eq!(code, Some(0), "{complaints}");
}
