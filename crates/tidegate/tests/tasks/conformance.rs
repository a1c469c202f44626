use crate::model;
use crate::place::{Place, run};
use crate::samples::*;
use std::sync::Arc;
use tidegate::store::StoreError;
use tidegate::task::{OutputChunk, OutputStream, TaskEvent, TaskOutcome, TaskStatus};
use tidegate::tasks::{
    AnyTaskStore, Change, ChangeOutcome, Durability, NewTask, Submission, TaskPage, TaskQuery,
    TaskStore,
};

/// Runs each case on every store.
macro_rules! on_every_store {
    ($($case:ident,)*) => {
        mod folder {
            $(#[test] fn $case() { super::run(super::$case(super::Place::folder())); })*
        }
        mod postgres {
            $(#[test] fn $case() { super::run(super::$case(super::Place::postgres())); })*
        }
    };
}

on_every_store! {
    what_was_kept_is_there_after_a_reopen,
    a_submission_is_new_the_same_or_another,
    of_many_submissions_at_once_one_is_new,
    many_different_submissions_at_once_are_all_new,
    a_step_starts_from_the_newest_state_or_is_told,
    of_two_managers_at_once_one_is_first,
    a_task_ends_once,
    lists_are_newest_first_by_page_and_by_status,
    a_client_lists_its_own_tasks,
    counts_follow_every_step,
    tasks_of_an_earlier_life_are_adopted_once,
    ended_tasks_can_be_forgotten,
    what_is_too_large_is_refused,
    any_history_is_as_the_model_says,
}

async fn what_was_kept_is_there_after_a_reopen(place: Place) {
    let store = place.open().await;
    let mut a = submit(&store, keyed("a", "true", "key\0ä")).await;
    assert_eq!(store.get(&a.id).await.unwrap(), Some(a.clone()));
    for event in [dispatching(), accepted(1), TaskEvent::Running { attempt: 1 }] {
        step(&store, &mut a, &event, 5).await;
        assert_eq!(store.get(&a.id).await.unwrap(), Some(a.clone()));
        assert_eq!(store.output(&a.id).await.unwrap(), None);
    }
    step(&store, &mut a, &ended(1, TaskOutcome::Failed), 9).await;
    let store = place.reopen(store).await;
    assert_eq!(store.get(&a.id).await.unwrap(), Some(a.clone()));
    assert_eq!(store.output(&a.id).await.unwrap(), Some(chunks()));
    assert_eq!(store.get(&id("b")).await.unwrap(), None);
    assert_eq!(store.output(&id("b")).await.unwrap(), None);
    let again = store.submit(keyed("c", "true", "key\0ä")).await.unwrap();
    assert_eq!(again, Submission::Same(a));
}

async fn a_submission_is_new_the_same_or_another(place: Place) {
    let store = place.open().await;
    let mut a = submit(&store, keyed("a", "one", "k")).await;
    submit(&store, task("b", "one", 1)).await;
    step(&store, &mut a, &dispatching(), 2).await;
    for (given, expected) in [
        (keyed("a", "one", "k"), Submission::Same(a.clone())),
        (task("a", "one", 77), Submission::Same(a.clone())),
        (keyed("a", "one", "another"), Submission::Same(a.clone())),
        (keyed("new", "one", "k"), Submission::Same(a.clone())),
        (keyed("a", "two", "k"), Submission::OtherUnderId(id("a"))),
        (keyed("b", "two", "k"), Submission::OtherUnderId(id("b"))),
        (keyed("new", "two", "k"), Submission::OtherUnderKey(id("a"))),
    ] {
        assert_eq!(store.submit(given.clone()).await.unwrap(), expected, "{given:?}");
    }
    assert_eq!(store.get(&id("new")).await.unwrap(), None);
    // A key that was only given with a repeat is free.
    submit(&store, keyed("new", "two", "another")).await;
    assert_eq!(store.counts().await.unwrap()[0], 3);
}

async fn of_many_submissions_at_once_one_is_new(place: Place) {
    let store = Arc::new(place.open().await);
    // The same name; the same key under different names; and others under one name.
    for (round, same_id, same_code) in [(0, true, true), (1, false, true), (2, true, false)] {
        let callers = (0..32).map(|caller| {
            let name = if same_id { format!("r{round}") } else { format!("r{round}-{caller}") };
            let code = if same_code { "code".to_owned() } else { format!("code {caller}") };
            let (store, key) = (store.clone(), format!("key-{round}"));
            tokio::spawn(async move { store.submit(keyed(&name, &code, &key)).await.unwrap() })
        });
        let callers: Vec<_> = callers.collect();
        let mut outcomes = Vec::new();
        for caller in callers {
            outcomes.push(caller.await.unwrap());
        }
        let news = outcomes.iter().filter(|outcome| **outcome == Submission::New).count();
        assert_eq!(news, 1, "{outcomes:?}");
        let others = outcomes.iter().filter(|outcome| match outcome {
            Submission::Same(_) => same_code,
            Submission::OtherUnderId(_) => same_id && !same_code,
            _ => false,
        });
        assert_eq!(others.count(), 31, "{outcomes:?}");
    }
    assert_eq!(store.counts().await.unwrap(), [3, 0, 0, 0, 0, 0]);
}

async fn many_different_submissions_at_once_are_all_new(place: Place) {
    let store = Arc::new(place.open().await);
    let callers = (0..16).map(|caller| {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0..20 {
                let name = format!("{caller}-{number}");
                let mut record = submit(&*store, keyed(&name, &name, &name)).await;
                step(&*store, &mut record, &dispatching(), 2).await;
                step(&*store, &mut record, &accepted(1), 3).await;
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(store.counts().await.unwrap(), [0, 320, 0, 0, 0, 0]);
    assert_eq!(names(&*store, Some(TaskStatus::Provisioning), 1_000).await.len(), 320);
}

async fn a_step_starts_from_the_newest_state_or_is_told(place: Place) {
    let store = place.open().await;
    let first = submit(&store, task("a", "true", 1)).await;
    let dispatched = after(&first, &dispatching(), 2);
    assert_eq!(persist(&store, &dispatched).await, ChangeOutcome::Yes);
    let conflict = || ChangeOutcome::Conflict(Some(dispatched.state.clone()));
    assert_eq!(persist(&store, &dispatched).await, conflict(), "it is kept once");
    assert_eq!(persist(&store, &after(&first, &TaskEvent::CancelRequested, 2)).await, conflict());
    let ahead = after(&after(&dispatched, &accepted(1), 3), &TaskEvent::Running { attempt: 1 }, 4);
    assert_eq!(persist(&store, &ahead).await, conflict());
    assert_eq!(store.get(&first.id).await.unwrap(), Some(dispatched.clone()));
    let unknown = after(&task("b", "true", 1).record, &dispatching(), 1);
    assert_eq!(persist(&store, &unknown).await, ChangeOutcome::Conflict(None));
    // What need not survive a power cut is there all the same.
    let next = after(&dispatched, &accepted(1), 5);
    let change = Change { id: next.id.clone(), state: next.state.clone(), output: None };
    assert_eq!(store.persist(change, Durability::Process).await, Ok(ChangeOutcome::Yes));
    let store = place.reopen(store).await;
    assert_eq!(store.get(&first.id).await.unwrap(), Some(next));
}

async fn of_two_managers_at_once_one_is_first(place: Place) {
    let store = Arc::new(place.open().await);
    for round in 0..20 {
        let record = submit(&*store, task(&format!("t{round}"), "true", 1)).await;
        let events =
            [dispatching(), TaskEvent::CancelRequested, dispatching(), TaskEvent::CancelRequested];
        let callers: Vec<_> = events.map(|event| after(&record, &event, 2)).to_vec();
        let callers = callers.into_iter().map(|next| {
            let store = store.clone();
            tokio::spawn(async move { (persist(&*store, &next).await, next) })
        });
        let callers: Vec<_> = callers.collect();
        let mut kept = Vec::new();
        for caller in callers {
            let (outcome, next) = caller.await.unwrap();
            if outcome == ChangeOutcome::Yes {
                kept.push(next);
            }
        }
        assert_eq!(kept.len(), 1, "{kept:?}");
        assert_eq!(store.get(&record.id).await.unwrap().as_ref(), kept.first());
    }
}

async fn a_task_ends_once(place: Place) {
    let store = place.open().await;
    let mut a = submit(&store, task("a", "true", 1)).await;
    finish(&store, &mut a, TaskOutcome::Succeeded, 4).await;
    let mut again = a.clone();
    again.state.version += 1;
    again.state.status = TaskStatus::Failed;
    assert_eq!(persist(&store, &again).await, ChangeOutcome::Conflict(Some(a.state.clone())));
    assert_eq!(store.counts().await.unwrap(), [0, 0, 0, 1, 0, 0]);
    assert_eq!(store.get(&a.id).await.unwrap(), Some(a));
}

async fn lists_are_newest_first_by_page_and_by_status(place: Place) {
    let store = place.open().await;
    assert_eq!(
        store.list(&TaskQuery { limit: 5, ..TaskQuery::default() }).await,
        Ok(TaskPage::default())
    );
    let mut all = Vec::new();
    // Names that sort neither way, and times that say nothing: the order is that of submission.
    for number in 0..12 {
        let name = format!("t{}", number * 7 % 12);
        let mut record = submit(&store, task(&name, "true", 100 - number)).await;
        match number % 4 {
            0 => finish(&store, &mut record, TaskOutcome::Succeeded, 5).await,
            1 => finish(&store, &mut record, TaskOutcome::Failed, 5).await,
            2 => step(&store, &mut record, &dispatching(), 5).await,
            _ => {
                step(&store, &mut record, &dispatching(), 5).await;
                step(&store, &mut record, &accepted(1), 6).await;
            }
        }
        all.push(record);
    }
    all.reverse();
    let store = place.reopen(store).await;
    for status in std::iter::once(None).chain(TaskStatus::ALL.map(Some)) {
        let expected =
            all.iter().filter(|task| status.is_none_or(|status| task.state.status == status));
        let expected: Vec<_> = expected.map(|task| task.id.to_string()).collect();
        for limit in [1, 2, 3, 100] {
            assert_eq!(names(&store, status, limit).await, expected, "{status:?} by {limit}");
        }
    }
    let page = store.list(&TaskQuery { limit: 12, ..TaskQuery::default() }).await.unwrap();
    assert_eq!((page.tasks, page.next), (all, None));
    assert_eq!(store.list(&TaskQuery::default()).await, Ok(TaskPage::default()));
    let wrong = TaskQuery { after: Some("x".into()), limit: 1, ..TaskQuery::default() };
    assert!(
        matches!(store.list(&wrong).await, Err(StoreError::Refused(text)) if text.contains("\"x\""))
    );
}

fn of_client(name: &str, client: Option<&str>) -> NewTask {
    let mut new = task(name, name, 1);
    new.record.state.client = client.map(Into::into);
    new
}

async fn a_client_lists_its_own_tasks(place: Place) {
    let store = place.open().await;
    // Names that begin with each other, the empty one, and none.
    let clients = [Some("a"), Some("ab"), Some(""), None, Some("b")];
    let mut own = Vec::new();
    for number in 0..30 {
        let client = clients[number % clients.len()];
        let record = submit(&store, of_client(&format!("t{number}"), client)).await;
        own.extend((client == Some("a")).then_some(record));
    }
    for event in [dispatching(), accepted(1), ended(1, TaskOutcome::Failed)] {
        step(&store, &mut own[1], &event, 5).await;
    }
    step(&store, &mut own[2], &dispatching(), 5).await;
    let store = place.reopen(store).await;
    let list = async |client: &str, status, after, limit| {
        let query = TaskQuery { client: Some(client.into()), status, after, limit };
        let page: TaskPage = store.list(&query).await.unwrap();
        (page.tasks.into_iter().map(|task| task.id.to_string()).collect::<Vec<_>>(), page.next)
    };
    let (first, next) = list("a", None, None, 4).await;
    assert_eq!(first, ["t25", "t20", "t15", "t10"]);
    let (second, next) = list("a", None, next, 4).await;
    assert_eq!((second, next), (vec!["t5".to_owned(), "t0".to_owned()], None));
    assert_eq!(list("a", Some(TaskStatus::Failed), None, 9).await.0, ["t5"]);
    let queued = list("a", Some(TaskStatus::Queued), None, 9).await.0;
    assert_eq!(queued, ["t25", "t20", "t15", "t10", "t0"]);
    assert_eq!(list("", None, None, 2).await.0, ["t27", "t22"], "clients without a token");
    assert_eq!(list("nobody", None, None, 9).await.0.len(), 0);
    let all = TaskQuery { limit: 50, ..TaskQuery::default() };
    assert_eq!(store.list(&all).await.unwrap().tasks.len(), 30, "no client: everybody's");
    assert_eq!(store.get(&own[1].id).await.unwrap(), Some(own[1].clone()), "with its client");
    assert_eq!(store.forget(1_000, 10).await.unwrap(), 1);
    assert_eq!(list("a", None, None, 9).await.0, ["t25", "t20", "t15", "t10", "t0"]);
    let refused = store.submit(of_client("bad", Some("a\0b"))).await;
    assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
}

async fn counts_follow_every_step(place: Place) {
    let store = place.open().await;
    assert_eq!(store.counts().await.unwrap(), [0; 6]);
    let mut a = submit(&store, task("a", "true", 1)).await;
    let mut b = submit(&store, task("b", "true", 1)).await;
    step(&store, &mut a, &dispatching(), 2).await;
    assert_eq!(store.counts().await.unwrap(), [2, 0, 0, 0, 0, 0]);
    step(&store, &mut a, &accepted(1), 2).await;
    assert_eq!(store.counts().await.unwrap(), [1, 1, 0, 0, 0, 0]);
    step(&store, &mut a, &TaskEvent::Running { attempt: 1 }, 2).await;
    step(&store, &mut b, &TaskEvent::CancelRequested, 2).await;
    assert_eq!(store.counts().await.unwrap(), [0, 0, 1, 0, 0, 1]);
    let store = place.reopen(store).await;
    step(&store, &mut a, &TaskEvent::Lost { attempt: 1 }, 3).await;
    assert_eq!(store.counts().await.unwrap(), [1, 0, 0, 0, 0, 1]);
    assert_eq!(names(&store, Some(TaskStatus::Queued), 9).await, ["a"]);
}

async fn tasks_of_an_earlier_life_are_adopted_once(place: Place) {
    let store = place.open().await;
    let mut live = Vec::new();
    for number in 0..7 {
        let mut record = submit(&store, task(&format!("t{}", number * 3 % 7), "true", 1)).await;
        match number {
            0 => finish(&store, &mut record, TaskOutcome::Succeeded, 2).await,
            1 => step(&store, &mut record, &dispatching(), 2).await,
            _ => {}
        }
        live.extend((!record.state.status.is_over()).then_some(record));
    }
    assert_eq!(adopt_all(&store, OWNER, 3).await, [], "its own tasks of this life");
    let store = place.reopen(store).await;
    let ours = submit(&store, task("ours", "true", 1)).await;
    let adopted = adopt_all(&store, OWNER, 4).await;
    let owner = TaskEvent::Adopted { owner: OWNER.into() };
    let expected: Vec<_> = live.iter().map(|task| after(task, &owner, 9)).collect();
    assert_eq!(adopted, expected, "the oldest first, one version on");
    assert_eq!(adopt_all(&store, OWNER, 4).await, []);
    assert_eq!(store.get(&adopted[0].id).await.unwrap().as_ref(), Some(&adopted[0]));
    // Whoever knows only what was before is told.
    let late = after(&live[2], &dispatching(), 9);
    assert_eq!(
        persist(&store, &late).await,
        ChangeOutcome::Conflict(Some(adopted[2].state.clone()))
    );
    let mut mine = adopted[2].clone();
    step(&store, &mut mine, &dispatching(), 9).await;
    let store = place.reopen(store).await;
    let adopted = adopt_all(&store, OWNER, 100).await;
    assert_eq!(adopted.len(), expected.len() + 1);
    assert_eq!(adopted.last().map(|task| &task.id), Some(&ours.id));
    assert_eq!(store.counts().await.unwrap(), [7, 0, 0, 1, 0, 0]);
}

async fn ended_tasks_can_be_forgotten(place: Place) {
    let store = place.open().await;
    let mut tasks = Vec::new();
    for number in 0..6 {
        let name = format!("t{number}");
        let mut record = submit(&store, keyed(&name, "true", &name)).await;
        let outcome = if number % 2 == 0 { TaskOutcome::Succeeded } else { TaskOutcome::Failed };
        finish(&store, &mut record, outcome, 100 + number).await;
        tasks.push(record);
    }
    submit(&store, task("waits", "true", 1)).await;
    assert_eq!(store.forget(100, 10).await, Ok(0));
    assert_eq!(store.forget(104, 3).await, Ok(3), "at most so many");
    assert_eq!(store.forget(104, 3).await, Ok(1));
    assert_eq!(store.forget(104, 3).await, Ok(0));
    assert_eq!(store.counts().await.unwrap(), [1, 0, 0, 1, 1, 0]);
    assert_eq!(names(&store, None, 10).await, ["waits", "t5", "t4"]);
    assert_eq!(store.output(&id("t3")).await.unwrap(), None);
    assert_eq!(store.get(&id("t3")).await.unwrap(), None);
    assert_eq!(store.output(&id("t4")).await.unwrap(), Some(chunks()));
    // Its name and its key are free again. What ends now, and long ago by its clock, is found too.
    let mut again = submit(&store, keyed("t3", "another", "t3")).await;
    finish(&store, &mut again, TaskOutcome::Succeeded, 50).await;
    let store = place.reopen(store).await;
    assert_eq!(store.forget(u64::MAX, 10).await, Ok(3));
    assert_eq!(store.counts().await.unwrap(), [1, 0, 0, 0, 0, 0]);
    assert_eq!(names(&store, None, 10).await, ["waits"]);
}

async fn what_is_too_large_is_refused(place: Place) {
    let store = place.open().await;
    let refused = async |task| match store.submit(task).await {
        Err(StoreError::Refused(text)) => text,
        other => panic!("{other:?}"),
    };
    assert!(refused(keyed("a", "true", &"k".repeat(513))).await.contains("513"));
    assert!(refused(keyed("a", "true", "")).await.contains("task a"));
    assert!(refused(task("a", &"x".repeat(17 << 20), 1)).await.contains("spec"));
    let mut endless = task("a", "true", 1);
    endless.record.state.owner = "m".repeat(300).into();
    assert!(refused(endless).await.contains("300"));
    let record = submit(&store, keyed("a", &"ä\"\n".repeat(300_000), &"k".repeat(256))).await;
    assert_eq!(store.get(&record.id).await.unwrap().as_ref(), Some(&record));
    let state = after(&record, &dispatching(), 2).state;
    let chunk = OutputChunk { stream: OutputStream::Stdout, text: "x".repeat(33 << 20) };
    let output = Some(vec![chunk]);
    let change = Change { id: record.id.clone(), state, output };
    let error = store.persist(change, Durability::Power).await.unwrap_err();
    assert!(matches!(&error, StoreError::Refused(text) if text.contains("output")), "{error}");
    assert!(!error.is_temporary());
}

async fn any_history_is_as_the_model_says(place: Place) {
    model::compare(&place).await;
}

#[test]
fn an_address_that_names_no_store_is_told() {
    run(async {
        for url in ["", "redis://127.0.0.1/0"] {
            let error = AnyTaskStore::open(url).await.unwrap_err();
            assert!(matches!(error, StoreError::Unusable(_)), "{error}");
        }
    });
}
