//! The queue: order, positions, waits and watchers.

use crate::folder::TempFolder;
use crate::node::{Node, spec};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::MessagePriority::{High, Low, Normal};
use tidegate::task::{TaskId, TaskStatus};
use tidegate_server::tasks::execution::ExecuteBody;
use tidegate_server::tasks::manager::{ManagerSettings, TaskNotice};

#[test]
fn higher_priorities_go_first() {
    let folder = TempFolder::new("priorities");
    let node = Node::start(&folder, 1, ManagerSettings::default());
    node.run(async {
        let first = node.submit("first", "hang").await;
        let mut ids = Vec::new();
        for (name, priority) in [("low", Low), ("normal", Normal), ("high", High)] {
            let mut task = spec("sleep 20ms");
            task.priority = priority;
            ids.push(node.submit_as(name, task).await);
        }
        node.handle.cancel(&first).await.unwrap();
        let mut started = Vec::new();
        for id in &ids {
            started.push(node.until_over(id).await.started_ms.unwrap());
        }
        assert!(started[2] < started[1] && started[1] < started[0], "{started:?}");
    });
}

#[test]
fn a_queued_task_has_its_position_and_its_wait() {
    let folder = TempFolder::new("positions");
    let node = Node::start(&folder, 1, ManagerSettings::default());
    node.run(async {
        let past = node.submit("past", "sleep 20ms").await;
        node.until_over(&past).await;
        let runs = node.submit("runs", "hang").await;
        node.until(&runs, |view| view.status == TaskStatus::Running).await;
        let (a, b) = (node.submit("a", "print a").await, node.submit("b", "print b").await);
        let (a, b) = (node.handle.task(&a).await.unwrap(), node.handle.task(&b).await.unwrap());
        assert_eq!((a.status, a.queue_position), (TaskStatus::Queued, Some(0)));
        assert_eq!((b.status, b.queue_position), (TaskStatus::Queued, Some(1)));
        let age_ms = node.until(&a.id, |view| view.queue_age_ms >= Some(30)).await.queue_age_ms;
        assert!(age_ms > a.queue_age_ms, "{age_ms:?}");
        let waits_ms = (a.estimated_wait_ms.unwrap(), b.estimated_wait_ms.unwrap());
        assert!(waits_ms.0 <= waits_ms.1, "{waits_ms:?}");
        let runs = node.handle.task(&runs).await.unwrap();
        assert_eq!((runs.queue_position, runs.queue_age_ms), (None, None));
    });
}

#[test]
fn a_watcher_gets_every_change_in_order() {
    let folder = TempFolder::new("watch");
    let node = Node::start(&folder, 1, ManagerSettings::default());
    node.run(async {
        // A manager that was suspended while the task ran sees its end alone: then a longer task is tried.
        for sleep_ms in [300, 1_000, 3_000, 9_000] {
            if sees_all_states(&node, sleep_ms).await {
                return;
            }
        }
        panic!("no watcher saw the running state");
    });
}

/// Not as of the last probe.
#[test]
fn the_capacity_of_a_local_executor_is_read_at_once() {
    let folder = TempFolder::new("full");
    let rarely = Duration::from_secs(3_600);
    let node =
        Node::start(&folder, 2, ManagerSettings { probe_every: rarely, ..Default::default() });
    node.run(async {
        let running = async || node.handle.executors().await.unwrap().executors[0].running;
        assert_eq!(running().await, 0);
        let body = ExecuteBody {
            eval_id: "not-the-managers".to_owned(),
            code: "hang".to_owned(),
            language: None,
            reservation_id: None,
            attempt: 1,
            timeout_ms: None,
            lease_ms: None,
            args: Vec::new(),
            env: BTreeMap::new(),
        };
        node.executor.execute(body).unwrap();
        assert_eq!(running().await, 1);
        let task = node.submit("the-managers", "hang").await;
        node.until(&task, |view| view.status == TaskStatus::Running).await;
        assert_eq!(running().await, 2);
        node.executor.cancel(&TaskId::new("not-the-managers").unwrap().attempt(1));
        node.handle.cancel(&task).await.unwrap();
        node.until_over(&task).await;
        while node.executor.capacity().running > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(running().await, 0);
    });
}

/// Watches a task of that duration. True when the running state was seen; all others must be.
async fn sees_all_states(node: &Node, sleep_ms: u64) -> bool {
    let first = node.submit(&format!("first-{sleep_ms}"), "hang").await;
    let code = format!("print a\nsleep {sleep_ms}ms\nprint b");
    let id = node.submit(&format!("watched-{sleep_ms}"), &code).await;
    let mut watch = node.handle.watch(&id).await.unwrap();
    assert_eq!(watch.view.status, TaskStatus::Queued);
    node.handle.cancel(&first).await.unwrap();
    let (mut statuses, mut text) = (vec![watch.view.status], String::new());
    while let Some(notice) = watch.next().await.unwrap() {
        match notice {
            TaskNotice::Status(view) => statuses.push(view.status),
            TaskNotice::Progress { .. } => panic!("it reports none"),
            TaskNotice::Output { attempt, chunk } => {
                assert_eq!(attempt, 1);
                text.push_str(&chunk.text);
            }
        }
    }
    statuses.dedup();
    let mut expected = vec!["queued", "provisioning", "running", "succeeded"];
    let seen = statuses.contains(&TaskStatus::Running);
    expected.retain(|name| seen || *name != "running");
    assert_eq!(statuses.iter().map(|status| status.name()).collect::<Vec<_>>(), expected);
    assert_eq!(text, "a\nb\n");
    assert!(node.handle.watch(&id).await.unwrap().next().await.unwrap().is_none());
    seen
}
