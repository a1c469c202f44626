//! Ends of tasks: failure, timeout, cancellation.

use crate::folder::TempFolder;
use crate::node::{Node, spec};
use tidegate::task::{EndReason, TaskStatus};
use tidegate_server::tasks::manager::{ManagerSettings, TaskError, TaskNotice, TaskView};

#[test]
fn a_failure_is_retried_after_a_pause_up_to_its_retries() {
    let folder = TempFolder::new("retries");
    let node = Node::start(&folder, 1, ManagerSettings::default());
    node.run(async {
        // Occupies the slot until the watch has begun.
        let first = node.submit("first", "hang").await;
        let mut task = spec("fail 3");
        task.retries = 1;
        let id = node.submit_as("a", task).await;
        let mut watch = node.handle.watch(&id).await.unwrap();
        node.handle.cancel(&first).await.unwrap();
        let pausing = loop {
            match watch.next().await.unwrap().expect("the task is not over") {
                TaskNotice::Status(view) if view.failures == 1 => break view,
                _ => {}
            }
        };
        assert_eq!((pausing.status, pausing.exit_code), (TaskStatus::Queued, Some(3)));
        let not_before_ms = pausing.not_before_ms.unwrap();
        let ended = node.until_over(&id).await;
        assert_eq!((ended.status, ended.failures, ended.attempt), (TaskStatus::Failed, 2, 2));
        assert!(ended.started_ms.unwrap() >= not_before_ms, "{ended:?}");
    });
}

#[test]
fn a_task_beyond_its_timeout_fails_with_that_reason() {
    let folder = TempFolder::new("timeout");
    let node = Node::start(&folder, 1, ManagerSettings::default());
    node.run(async {
        let mut task = spec("hang");
        task.timeout_ms = 50;
        let id = node.submit_as("a", task).await;
        let ended = node.until_over(&id).await;
        assert_eq!((ended.status, ended.reason), (TaskStatus::Failed, Some(EndReason::Timeout)));
    });
}

#[test]
fn a_task_is_cancelled_while_it_runs_is_queued_or_waits_for_a_retry() {
    let folder = TempFolder::new("cancel");
    let node = Node::start(&folder, 1, ManagerSettings::default());
    node.run(async {
        let mut fails = spec("fail 1");
        fails.retries = 100;
        let pauses = node.submit_as("pauses", fails).await;
        // Each pause is longer than the one before.
        let is_pausing = |view: &TaskView| view.failures >= 3 && view.status == TaskStatus::Queued;
        node.until(&pauses, is_pausing).await;
        assert_eq!(node.handle.cancel(&pauses).await.unwrap().status, TaskStatus::Cancelled);
        let runs = node.submit("runs", "hang").await;
        node.until(&runs, |view| view.status == TaskStatus::Running).await;
        let waits = node.submit("waits", "print never").await;
        assert_eq!(node.handle.cancel(&waits).await.unwrap().status, TaskStatus::Cancelled);
        assert!(node.handle.cancel(&runs).await.unwrap().cancel_requested);
        for id in [pauses, runs, waits] {
            assert_eq!(node.until_over(&id).await.status, TaskStatus::Cancelled);
            let over = node.handle.cancel(&id).await.unwrap_err();
            assert_eq!(over, TaskError::Over { id, status: "cancelled" });
        }
        let next = node.submit("next", "print next").await;
        assert_eq!(node.until_over(&next).await.status, TaskStatus::Succeeded);
        assert_eq!(node.executor.capacity().running, 0);
    });
}
