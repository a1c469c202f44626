//! What outlives a manager, and what outlives a store that fails.

use crate::folder::TempFolder;
use crate::node::{Node, named, spec};
use std::time::Duration;
use tidegate::task::{TaskId, TaskStatus};
use tidegate_server::manager::{DeskError, ManagerTerms};
use tokio::time::sleep;

#[test]
fn what_waits_when_a_manager_ends_is_done_by_the_next() {
    let folder = TempFolder::new("drain");
    let node = Node::start(&folder, 1, ManagerTerms::default());
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
    let node = Node::start(&folder, 1, ManagerTerms::default());
    node.run(async {
        let ended = node.desk.task(&runs).await.unwrap();
        assert_eq!((ended.status, ended.attempt), (TaskStatus::Succeeded, 1), "it was let finish");
        assert_eq!(node.desk.output(&runs).await.unwrap()[0].text, "done\n");
        for id in waits {
            assert_eq!(node.until_over(&id).await.status, TaskStatus::Succeeded);
        }
    });
}

#[test]
fn what_is_over_is_forgotten_after_its_time() {
    let folder = TempFolder::new("retention");
    let node = Node::start(&folder, 1, ManagerTerms::default());
    let id = node.run(async {
        let id = node.submit("a", "print a").await;
        node.until_over(&id).await;
        id
    });
    node.shutdown();
    let node =
        Node::start(&folder, 1, ManagerTerms { retention: Duration::ZERO, ..Default::default() });
    node.run(async {
        while node.desk.task(&id).await != Err(DeskError::NotFound(id.clone())) {
            sleep(Duration::from_millis(5)).await;
        }
    });
}

/// Also what it kept when it said that it could not.
#[test]
fn a_store_that_fails_every_other_time_loses_nothing() {
    let folder = TempFolder::new("shaky");
    let terms = ManagerTerms { lease: Duration::from_secs(1), ..ManagerTerms::default() };
    let node = Node::start(&folder, 3, terms);
    node.store.shake(true);
    let ids: Vec<_> = (0..60).map(|nth| TaskId::new(&format!("t-{nth}")).unwrap()).collect();
    node.run(async {
        for id in &ids {
            while node.desk.submit(named(id.as_str(), spec("print x"))).await.is_err() {}
        }
        for id in &ids {
            assert_eq!(node.until_over(id).await.status, TaskStatus::Succeeded);
        }
        node.store.shake(false);
        let mut attempts = 0;
        for id in &ids {
            let view = node.desk.task(id).await.unwrap();
            assert_eq!((view.status, view.failures), (TaskStatus::Succeeded, 0));
            attempts += u64::from(view.attempt);
            assert_eq!(node.desk.output(id).await.unwrap()[0].text, "x\n");
        }
        assert!(node.executor.counts().started <= attempts, "an attempt was started twice");
        assert_eq!(node.executor.capacity().running, 0);
    });
}

/// Nobody hands it in again, and it is done all the same.
#[test]
fn a_submission_whose_answer_was_lost_is_done() {
    let folder = TempFolder::new("doubt");
    let terms = ManagerTerms { lease: Duration::from_secs(1), ..ManagerTerms::default() };
    let node = Node::start(&folder, 1, terms);
    node.run(async {
        node.store.shake(true);
        let mut lost = Vec::new();
        for nth in 0..20 {
            let name = format!("t-{nth}");
            if node.desk.submit(named(&name, spec("print x"))).await.is_err() {
                lost.push(TaskId::new(&name).unwrap());
            }
        }
        node.store.shake(false);
        assert!(!lost.is_empty());
        for id in lost {
            match node.desk.task(&id).await {
                Err(DeskError::NotFound(_)) => {}
                found => {
                    found.unwrap();
                    assert_eq!(node.until_over(&id).await.status, TaskStatus::Succeeded);
                }
            }
        }
    });
}
