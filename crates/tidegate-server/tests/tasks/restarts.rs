//! Tasks survive restarts of the manager and failures of the store.

use crate::folder::TempFolder;
use crate::node::{Node, named, spec};
use std::time::Duration;
use tidegate::task::{TaskId, TaskStatus};
use tidegate_server::tasks::manager::{ManagerSettings, TaskError};
use tokio::time::sleep;

#[test]
fn queued_tasks_are_run_after_a_restart() {
    let folder = TempFolder::new("drain");
    let node = Node::start(&folder, 1, ManagerSettings::default());
    let (runs, waits) = node.run(async {
        let runs = node.submit("runs", "sleep 200ms\nprint done").await;
        node.until(&runs, |view| view.started_ms.is_some()).await;
        let mut waits = Vec::new();
        for nth in 0..5 {
            waits.push(node.submit(&format!("waits-{nth}"), "print x").await);
        }
        (runs, waits)
    });
    node.shutdown();
    let node = Node::start(&folder, 1, ManagerSettings::default());
    node.run(async {
        let ended = node.handle.task(&runs).await.unwrap();
        assert_eq!(
            (ended.status, ended.attempt),
            (TaskStatus::Succeeded, 1),
            "it finished during the shutdown"
        );
        assert_eq!(node.handle.output(&runs).await.unwrap()[0].text, "done\n");
        for id in waits {
            assert_eq!(node.until_over(&id).await.status, TaskStatus::Succeeded);
        }
    });
}

/// Number of the first attempt is free: only what was tried counts.
#[test]
fn a_task_that_never_started_has_no_attempts_after_restarts() {
    let folder = TempFolder::new("untried");
    // No slot: it waits.
    let node = Node::start(&folder, 0, ManagerSettings::default());
    let id = node.run(node.submit("waits", "print x"));
    node.shutdown();
    for _ in 0..2 {
        let node = Node::start(&folder, 0, ManagerSettings::default());
        let view = node.run(node.until(&id, |view| view.queue_position.is_some()));
        assert_eq!((view.status, view.attempts()), (TaskStatus::Queued, 0), "{view:?}");
        node.shutdown();
    }
    let node = Node::start(&folder, 1, ManagerSettings::default());
    let view = node.run(node.until_over(&id));
    let tried = (view.status, view.attempts(), view.failures, view.losses);
    assert_eq!(tried, (TaskStatus::Succeeded, 1, 0, 0), "{view:?}");
}

#[test]
fn ended_tasks_are_deleted_after_the_retention_time() {
    let folder = TempFolder::new("retention");
    let node = Node::start(&folder, 1, ManagerSettings::default());
    let id = node.run(async {
        let id = node.submit("a", "print a").await;
        node.until_over(&id).await;
        id
    });
    node.shutdown();
    let node = Node::start(
        &folder,
        1,
        ManagerSettings { retention: Duration::ZERO, ..Default::default() },
    );
    node.run(async {
        while node.handle.task(&id).await != Err(TaskError::NotFound(id.clone())) {
            sleep(Duration::from_millis(5)).await;
        }
    });
}

/// Including tasks that it persisted although it reported a failure.
#[test]
fn a_store_that_fails_every_other_time_loses_nothing() {
    let folder = TempFolder::new("shaky");
    let settings = ManagerSettings { lease: Duration::from_secs(1), ..ManagerSettings::default() };
    let node = Node::start(&folder, 3, settings);
    node.store.set_failing(true);
    let ids: Vec<_> = (0..60).map(|nth| TaskId::new(&format!("t-{nth}")).unwrap()).collect();
    node.run(async {
        for id in &ids {
            while node.handle.submit(named(id.as_str(), spec("print x"))).await.is_err() {}
        }
        for id in &ids {
            assert_eq!(node.until_over(id).await.status, TaskStatus::Succeeded);
        }
        node.store.set_failing(false);
        let mut attempts = 0;
        for id in &ids {
            let view = node.handle.task(id).await.unwrap();
            assert_eq!((view.status, view.failures), (TaskStatus::Succeeded, 0));
            attempts += u64::from(view.attempt);
            assert_eq!(node.handle.output(id).await.unwrap()[0].text, "x\n");
        }
        assert!(node.executor.counts().started <= attempts, "an attempt was started twice");
        assert_eq!(node.executor.capacity().running, 0);
    });
}

/// Without a repeated submission.
#[test]
fn a_submission_whose_response_was_lost_is_run() {
    let folder = TempFolder::new("doubt");
    let settings = ManagerSettings { lease: Duration::from_secs(1), ..ManagerSettings::default() };
    let node = Node::start(&folder, 1, settings);
    node.run(async {
        node.store.set_failing(true);
        let mut lost = Vec::new();
        for nth in 0..20 {
            let name = format!("t-{nth}");
            if node.handle.submit(named(&name, spec("print x"))).await.is_err() {
                lost.push(TaskId::new(&name).unwrap());
            }
        }
        node.store.set_failing(false);
        assert!(!lost.is_empty());
        for id in lost {
            match node.handle.task(&id).await {
                Err(TaskError::NotFound(_)) => {}
                found => {
                    found.unwrap();
                    assert_eq!(node.until_over(&id).await.status, TaskStatus::Succeeded);
                }
            }
        }
    });
}
