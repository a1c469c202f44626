//! Memory of ended executions.

use crate::support::{TestWorker, code, mock, slots};
use tidegate_server::tasks::executor::ExecutorConfig;

#[tokio::test]
async fn ended_executions_are_remembered_up_to_the_limit_and_not_started_again() {
    let config = ExecutorConfig { past_max: 3, ..slots(1) };
    let worker = TestWorker::with(config, mock());
    for nth in 0..5 {
        worker.execute(code(&format!("t{nth}"), "sleep 1ms")).await.ok();
        worker.ended(&format!("t{nth}")).await;
    }
    // Cancellations of unknown executions do not displace remembered ones.
    for nth in 0..10 {
        worker.delete(&format!("/executions/never{nth}")).await.ok();
    }
    for nth in 0..2 {
        let path = format!("/executions/t{nth}");
        worker.get(&path).await.refused(404, "unknown_execution");
    }
    for nth in 2..5 {
        worker.execute(code(&format!("t{nth}"), "sleep 1ms")).await.ok();
        worker.get(&format!("/executions/t{nth}")).await.ok();
    }
    assert_eq!(worker.executor().counts().started, 5);
}

#[tokio::test]
async fn the_oldest_output_is_dropped_at_the_limit_and_reported_as_cut() {
    let config = ExecutorConfig { past_bytes_max: 2_500, ..slots(1) };
    let worker = TestWorker::with(config, mock());
    for nth in 0..4 {
        worker.execute(code(&format!("t{nth}"), "fill 1000")).await.ok();
        worker.ended(&format!("t{nth}")).await;
    }
    for (nth, kept) in [(0, false), (1, false), (2, true), (3, true)] {
        let view = worker.get(&format!("/executions/t{nth}")).await.ok();
        assert_eq!(view["state"], "succeeded", "how it ended is still known");
        assert_eq!(!view["output"].as_array().unwrap().is_empty(), kept, "{nth}");
        assert_eq!(view["output_cut"], !kept, "{nth}");
        assert_eq!(view["next"], 1000);
    }
}
