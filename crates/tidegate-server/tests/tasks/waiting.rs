//! Who waits, for how long, and who goes first.

use crate::folder::TempFolder;
use crate::node::{Node, spec};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::MessagePriority::{High, Low, Normal};
use tidegate::task::{TaskId, TaskStatus};
use tidegate_server::manager::{ManagerTerms, TaskNotice};
use tidegate_server::worker::ExecuteBody;

#[test]
fn the_more_urgent_goes_first() {
    let folder = TempFolder::new("priorities");
    let node = Node::start(&folder, 1, ManagerTerms::default());
    node.run(async {
        let first = node.submit("first", "hang").await;
        let mut ids = Vec::new();
        for (name, priority) in [("low", Low), ("normal", Normal), ("high", High)] {
            let mut task = spec("sleep 20ms");
            task.priority = priority;
            ids.push(node.submit_as(name, task).await);
        }
        node.desk.cancel(&first).await.unwrap();
        let mut started = Vec::new();
        for id in &ids {
            started.push(node.until_over(id).await.started_ms.unwrap());
        }
        assert!(started[2] < started[1] && started[1] < started[0], "{started:?}");
    });
}

#[test]
fn who_waits_is_told_where_and_how_long() {
    let folder = TempFolder::new("positions");
    let node = Node::start(&folder, 1, ManagerTerms::default());
    node.run(async {
        let past = node.submit("past", "sleep 20ms").await;
        node.until_over(&past).await;
        let runs = node.submit("runs", "hang").await;
        node.until(&runs, |view| view.status == TaskStatus::Running).await;
        let (a, b) = (node.submit("a", "print a").await, node.submit("b", "print b").await);
        let (a, b) = (node.desk.task(&a).await.unwrap(), node.desk.task(&b).await.unwrap());
        assert_eq!((a.status, a.queue_position), (TaskStatus::Queued, Some(0)));
        assert_eq!((b.status, b.queue_position), (TaskStatus::Queued, Some(1)));
        let age_ms = node.until(&a.id, |view| view.queue_age_ms >= Some(30)).await.queue_age_ms;
        assert!(age_ms > a.queue_age_ms, "{age_ms:?}");
        let waits_ms = (a.estimated_wait_ms.unwrap(), b.estimated_wait_ms.unwrap());
        assert!(waits_ms.0 <= waits_ms.1, "{waits_ms:?}");
        let runs = node.desk.task(&runs).await.unwrap();
        assert_eq!((runs.queue_position, runs.queue_age_ms), (None, None));
    });
}

#[test]
fn who_watches_is_told_everything_in_order() {
    let folder = TempFolder::new("watch");
    let node = Node::start(&folder, 1, ManagerTerms::default());
    node.run(async {
        // A manager that stood still while it ran learns of its end alone: then another runs for longer.
        for sleep_ms in [300, 1_000, 3_000, 9_000] {
            if told_of_all_states(&node, sleep_ms).await {
                return;
            }
        }
        panic!("nobody is told that it runs");
    });
}

/// Whoever asks is not told what was so when the manager last looked.
#[test]
fn how_full_an_executor_of_this_process_is_is_told_as_it_is() {
    let folder = TempFolder::new("full");
    let seldom = Duration::from_secs(3_600);
    let node = Node::start(&folder, 2, ManagerTerms { probe_every: seldom, ..Default::default() });
    node.run(async {
        let running = async || node.desk.executors().await.unwrap().executors[0].running;
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
        node.desk.cancel(&task).await.unwrap();
        node.until_over(&task).await;
        while node.executor.capacity().running > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(running().await, 0);
    });
}

/// Watches a task that takes so long. Whether it was told that it runs; all else it has to be.
async fn told_of_all_states(node: &Node, sleep_ms: u64) -> bool {
    let first = node.submit(&format!("first-{sleep_ms}"), "hang").await;
    let code = format!("print a\nsleep {sleep_ms}ms\nprint b");
    let id = node.submit(&format!("watched-{sleep_ms}"), &code).await;
    let mut watch = node.desk.watch(&id).await.unwrap();
    assert_eq!(watch.view.status, TaskStatus::Queued);
    node.desk.cancel(&first).await.unwrap();
    let (mut statuses, mut text) = (vec![watch.view.status], String::new());
    while let Some(notice) = watch.next().await.unwrap() {
        match notice {
            TaskNotice::Status(view) => statuses.push(view.status),
            TaskNotice::Output { attempt, chunk } => {
                assert_eq!(attempt, 1);
                text.push_str(&chunk.text);
            }
        }
    }
    statuses.dedup();
    let mut expected = vec!["queued", "provisioning", "running", "succeeded"];
    let told = statuses.contains(&TaskStatus::Running);
    expected.retain(|name| told || *name != "running");
    assert_eq!(statuses.iter().map(|it| it.name()).collect::<Vec<_>>(), expected);
    assert_eq!(text, "a\nb\n");
    assert!(node.desk.watch(&id).await.unwrap().next().await.unwrap().is_none());
    told
}
