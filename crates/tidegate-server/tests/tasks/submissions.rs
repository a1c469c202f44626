//! What is handed in: once, whatever is repeated, and not more than there is room for.

use crate::folder::TempFolder;
use crate::node::{Node, named, spec};
use tidegate::task::TaskStatus;
use tidegate_server::manager::{DeskError, ManagerTerms, Submit};

#[test]
fn the_same_again_is_the_same_task_and_another_is_refused() {
    let folder = TempFolder::new("same");
    let node = Node::start(&folder, 1, ManagerTerms::default());
    node.run(async {
        let id = node.submit("a", "print a").await;
        let (again, new) = node.desk.submit(named("a", spec("print a"))).await.unwrap();
        assert_eq!((&again.id, new), (&id, false));
        let other = node.desk.submit(named("a", spec("print b"))).await;
        assert_eq!(other.unwrap_err(), DeskError::OtherUnderId(id.clone()));
        node.until_over(&id).await;
        let (again, new) = node.desk.submit(named("a", spec("print a"))).await.unwrap();
        assert_eq!((again.status, new), (TaskStatus::Succeeded, false), "also when it is over");
        let keyed = |code| Submit { id: None, key: Some("k".into()), spec: spec(code) };
        let (first, _) = node.desk.submit(keyed("print a")).await.unwrap();
        let (second, new) = node.desk.submit(keyed("print a")).await.unwrap();
        assert_eq!((&second.id, new), (&first.id, false));
        let other = node.desk.submit(keyed("print b")).await;
        assert_eq!(other.unwrap_err(), DeskError::OtherUnderKey(first.id));
    });
}

#[test]
fn a_full_line_takes_no_more_until_one_leaves() {
    let folder = TempFolder::new("full");
    let node = Node::start(&folder, 1, ManagerTerms { tasks_max: 2, ..ManagerTerms::default() });
    node.run(async {
        let runs = node.submit("a", "hang").await;
        let waits = node.submit("b", "hang").await;
        let full = node.desk.submit(named("c", spec("print c"))).await.unwrap_err();
        assert!(matches!(full, DeskError::LineFull { waiting: 2, .. }), "{full:?}");
        let nothing = node.desk.task(&named("c", spec("")).id.unwrap()).await.unwrap_err();
        assert!(matches!(nothing, DeskError::NotFound(_)), "{nothing:?}");
        for id in [runs, waits] {
            node.desk.cancel(&id).await.unwrap();
            node.until_over(&id).await;
        }
        let id = node.submit("c", "print c").await;
        assert_eq!(node.until_over(&id).await.status, TaskStatus::Succeeded);
    });
}

#[test]
fn what_nobody_runs_is_refused_with_what_somebody_does() {
    let folder = TempFolder::new("runtime");
    let node = Node::start(&folder, 1, ManagerTerms::default());
    node.run(async {
        let mut cobol = spec("x");
        cobol.runtime = "cobol".to_owned();
        let refused = node.desk.submit(named("a", cobol)).await.unwrap_err();
        let known = vec!["sh".to_owned()];
        assert_eq!(refused, DeskError::UnknownRuntime { given: "cobol".to_owned(), known });
        for wrong in [spec(""), {
            let mut none = spec("x");
            none.timeout_ms = 0;
            none
        }] {
            let refused = node.desk.submit(named("a", wrong)).await.unwrap_err();
            assert!(matches!(refused, DeskError::Spec(_)), "{refused:?}");
        }
    });
}
