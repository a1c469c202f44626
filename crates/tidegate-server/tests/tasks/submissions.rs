//! Submissions: idempotency, the queue limit and invalid tasks.

use crate::folder::TempFolder;
use crate::node::{Node, named, spec};
use tidegate::task::TaskStatus;
use tidegate_server::tasks::manager::{ManagerSettings, Submit, TaskError};

#[test]
fn a_repeated_submission_is_the_same_task_and_a_different_one_is_refused() {
    let folder = TempFolder::new("same");
    let node = Node::start(&folder, 1, ManagerSettings::default());
    node.run(async {
        let id = node.submit("a", "print a").await;
        let (again, new) = node.handle.submit(named("a", spec("print a"))).await.unwrap();
        assert_eq!((&again.id, new), (&id, false));
        let other = node.handle.submit(named("a", spec("print b"))).await;
        assert_eq!(other.unwrap_err(), TaskError::IdInUse(id.clone()));
        node.until_over(&id).await;
        let (again, new) = node.handle.submit(named("a", spec("print a"))).await.unwrap();
        assert_eq!((again.status, new), (TaskStatus::Succeeded, false), "also when it is over");
        let keyed =
            |code| Submit { id: None, key: Some("k".into()), client: None, spec: spec(code) };
        let (first, _) = node.handle.submit(keyed("print a")).await.unwrap();
        let (second, new) = node.handle.submit(keyed("print a")).await.unwrap();
        assert_eq!((&second.id, new), (&first.id, false));
        let other = node.handle.submit(keyed("print b")).await;
        assert_eq!(other.unwrap_err(), TaskError::KeyInUse(first.id));
    });
}

#[test]
fn a_full_queue_refuses_until_a_task_ends() {
    let folder = TempFolder::new("full");
    let node =
        Node::start(&folder, 1, ManagerSettings { tasks_max: 2, ..ManagerSettings::default() });
    node.run(async {
        let runs = node.submit("a", "hang").await;
        let waits = node.submit("b", "hang").await;
        let full = node.handle.submit(named("c", spec("print c"))).await.unwrap_err();
        assert!(matches!(full, TaskError::QueueFull { waiting: 2, .. }), "{full:?}");
        let nothing = node.handle.task(&named("c", spec("")).id.unwrap()).await.unwrap_err();
        assert!(matches!(nothing, TaskError::NotFound(_)), "{nothing:?}");
        for id in [runs, waits] {
            node.handle.cancel(&id).await.unwrap();
            node.until_over(&id).await;
        }
        let id = node.submit("c", "print c").await;
        assert_eq!(node.until_over(&id).await.status, TaskStatus::Succeeded);
    });
}

#[test]
fn an_unknown_runtime_is_refused_with_the_available_ones() {
    let folder = TempFolder::new("runtime");
    let node = Node::start(&folder, 1, ManagerSettings::default());
    node.run(async {
        let mut cobol = spec("x");
        cobol.runtime = "cobol".to_owned();
        let refused = node.handle.submit(named("a", cobol)).await.unwrap_err();
        let known = vec!["sh".to_owned()];
        assert_eq!(refused, TaskError::UnknownRuntime { given: "cobol".to_owned(), known });
        for wrong in [spec(""), {
            let mut none = spec("x");
            none.timeout_ms = 0;
            none
        }] {
            let refused = node.handle.submit(named("a", wrong)).await.unwrap_err();
            assert!(matches!(refused, TaskError::Spec(_)), "{refused:?}");
        }
    });
}
