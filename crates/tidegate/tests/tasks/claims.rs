//! Queued tasks that belong to nobody: claims, positions, hints, and what is handed over. With a database alone; a
//! folder has one manager.

use crate::place::{Place, run};
use crate::samples::*;
use crate::support::postgres::Postgres;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate::MessagePriority::{self, Critical, High, Low, Normal};
use tidegate::task::{TaskEvent, TaskStatus};
use tidegate::tasks::{
    ChangeOutcome, Claim, ClaimGroup, Claimed, NewTask, PostgresTaskStore, Submission, TaskRecord,
    TaskStore,
};
use tokio::time::timeout;

const LONG: Duration = Duration::from_secs(3_600);
/// Longest wait for what must come.
const SOON: Duration = Duration::from_secs(20);

async fn connect(url: &str) -> PostgresTaskStore {
    PostgresTaskStore::connect(url).await.unwrap()
}

/// A task of nobody.
fn queued(name: &str, runtime: &str, priority: MessagePriority) -> NewTask {
    let mut new = task(name, "true", 1);
    new.record.state.owner = "".into();
    let spec = Arc::make_mut(&mut new.record.spec);
    (spec.runtime, spec.priority) = (runtime.to_owned(), priority);
    new
}

fn slots(runtimes: Option<&[&str]>, executors: &[&str]) -> ClaimGroup {
    let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    ClaimGroup { runtimes: runtimes.map(own), executors: own(executors) }
}

fn claim_of(owner: &str, groups: Vec<ClaimGroup>) -> Claim {
    Claim { owner: owner.to_owned(), groups, due_ms: None, doubt: false }
}

async fn claim(store: &impl TaskStore, owner: &str, executors: &[&str]) -> Vec<TaskRecord> {
    store.claim(claim_of(owner, vec![slots(None, executors)])).await.unwrap().tasks
}

fn short(records: &[TaskRecord]) -> Vec<(&str, &str)> {
    let executor = |record: &'_ TaskRecord| record.state.assignment.clone().unwrap().executor;
    let names = records.iter().map(|record| (record.id.as_str(), executor(record)));
    names.map(|(name, executor)| (name, if &*executor == "e1" { "e1" } else { "e2" })).collect()
}

#[test]
fn a_claim_is_the_step_before_an_attempt_is_sent() {
    run(async {
        let place = Place::postgres();
        let store = connect(&place.url).await;
        let new = queued("t", "sh", Normal);
        let mut record = submit(&store, new.clone()).await;
        let claimed = claim(&store, "m", &["e1"]).await;
        record = after(&record, &TaskEvent::Dispatching { executor: "e1".into() }, 2);
        record.state.owner = "m".into();
        assert_eq!(claimed, [record.clone()]);
        assert_eq!(store.get(&record.id).await.unwrap(), Some(record.clone()), "read as claimed");
        assert_eq!(store.submit(new).await.unwrap(), Submission::Same(record.clone()));
        assert_eq!(claim(&store, "m", &["e1", "e2"]).await, [], "it has an owner");
        step(&store, &mut record, &accepted(1), 3).await;
        assert_eq!(store.get(&record.id).await.unwrap(), Some(record.clone()));
        step(&store, &mut record, &TaskEvent::Lost { attempt: 1 }, 4).await;
        assert_eq!(claim(&store, "m", &["e1"]).await, [], "its owner has not given it back");
        record.state.version += 1;
        record.state.release();
        assert_eq!(persist(&store, &record).await, ChangeOutcome::Yes);
        let again = claim(&store, "other", &["e2"]).await;
        assert_eq!((again[0].state.attempt, &*again[0].state.owner), (2, "other"));
    });
}

#[test]
fn claims_go_by_priority_then_sequence_for_slots_that_can_run_them() {
    run(async {
        let place = Place::postgres();
        let store = connect(&place.url).await;
        for (name, runtime, priority) in [
            ("low", "sh", Low),
            ("normal-1", "sh", Normal),
            ("python", "python", Critical),
            ("normal-2", "sh", Normal),
            ("high", "sh", High),
        ] {
            submit(&store, queued(name, runtime, priority)).await;
        }
        let sh = claim_of("m", vec![slots(Some(&["sh", "ruby"]), &["e1", "e2", "e1"])]);
        let claimed = store.claim(sh).await.unwrap().tasks;
        assert_eq!(short(&claimed), [("high", "e1"), ("normal-1", "e2"), ("normal-2", "e1")]);
        let both = vec![slots(Some(&["python"]), &["e1", "e1"]), slots(None, &["e2", "e2"])];
        let claimed = store.claim(claim_of("m", both)).await.unwrap().tasks;
        assert_eq!(short(&claimed), [("python", "e1"), ("low", "e2")]);
    });
}

#[test]
fn four_managers_at_once_claim_each_task_once() {
    run(async {
        let place = Place::postgres();
        let mut stores = Vec::new();
        for _ in 0..4 {
            stores.push(Arc::new(connect(&place.url).await));
        }
        for number in 0..300 {
            submit(&*stores[0], queued(&format!("t{number}"), "sh", Normal)).await;
        }
        let managers = stores.iter().enumerate().map(|(nth, store)| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let (mut claimed, owner) = (Vec::new(), format!("m{nth}"));
                loop {
                    let more = claim(&*store, &owner, &["e1"; 7]).await;
                    if more.is_empty() {
                        return claimed;
                    }
                    claimed.extend(more.into_iter().map(|record| record.id.to_string()));
                }
            })
        });
        let (mut all, mut count) = (BTreeSet::new(), 0);
        for manager in managers.collect::<Vec<_>>() {
            let claimed = manager.await.unwrap();
            count += claimed.len();
            all.extend(claimed);
        }
        // What one had locked another left out: it is claimed by the next.
        let rest = claim(&*stores[0], "m0", &["e1"; 100]).await;
        all.extend(rest.iter().map(|record| record.id.to_string()));
        assert_eq!((all.len(), count + rest.len()), (300, 300));
    });
}

#[test]
fn a_claim_whose_answer_was_lost_is_found() {
    run(async {
        let place = Place::postgres();
        let store = connect(&place.url).await;
        for name in ["a", "b", "c"] {
            submit(&store, queued(name, "sh", Normal)).await;
        }
        let lost = claim(&store, "m", &["e1", "e2"]).await;
        let mut followed = lost[0].clone();
        step(&store, &mut followed, &accepted(1), 2).await;
        let doubt = Claim { doubt: true, ..claim_of("m", vec![slots(None, &["e1"])]) };
        let found = store.claim(doubt.clone()).await.unwrap();
        assert_eq!(short(&found.before), [("b", "e2")], "a step has followed the first");
        assert_eq!(short(&found.tasks), [("c", "e1")]);
        let other = Claim { owner: "n".to_owned(), ..doubt };
        assert_eq!(store.claim(other).await.unwrap(), Claimed::default(), "another's");
    });
}

/// Else it would be the first of each claim, and nothing of the queue would ever run.
#[test]
fn a_damaged_task_keeps_no_other_from_being_claimed_or_adopted() {
    run(async {
        let server = Postgres::shared();
        let url = server.url("schema=damaged_claims");
        let store = connect(&url).await;
        for name in ["bad", "a", "b"] {
            submit(&store, queued(name, "sh", Normal)).await;
        }
        let config: tokio_postgres::Config = server.url("").parse().unwrap();
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let update =
            "UPDATE damaged_claims_tasks.tasks SET state = '{\"version\":' WHERE id = 'bad'";
        assert_eq!(client.execute(update, &[]).await.unwrap(), 1);
        let claimed = claim(&store, "m", &["e1"; 3]).await;
        assert_eq!(short(&claimed), [("a", "e1"), ("b", "e1")]);
        assert_eq!(claim(&store, "m", &["e1"; 3]).await, [], "it has left the queue");
        assert!(store.get(&id("bad")).await.is_err(), "told to whoever asks");
        let doubt = Claim { doubt: true, ..claim_of("m", vec![]) };
        assert_eq!(short(&store.claim(doubt).await.unwrap().before), [("a", "e1"), ("b", "e1")]);
        store.close().await;
        let adopted = adopt_all(&connect(&url).await, "m", 10).await;
        assert_eq!(short(&adopted), [("a", "e1"), ("b", "e1")]);
    });
}

/// The marks of managers that live run out like those of others while the database is away.
#[test]
fn the_tasks_of_others_are_adopted_only_if_that_is_wanted() {
    run(async {
        let place = Place::postgres();
        let [a, b] = [connect(&place.url).await, connect(&place.url).await];
        for (store, owner, name) in [(&a, "a", "of-a"), (&b, "b", "of-b")] {
            submit(store, queued(name, "sh", Normal)).await;
            assert_eq!(claim(store, owner, &["e1"]).await.len(), 1);
            store.beat(owner, Duration::ZERO).await.unwrap();
        }
        b.close().await;
        let b = connect(&place.url).await;
        let names = |page: Vec<TaskRecord>| -> Vec<_> {
            page.iter().map(|record| record.id.to_string()).collect()
        };
        assert_eq!(names(b.adopt("b", 10, false).await.unwrap()), ["of-b"], "of an earlier life");
        assert_eq!(names(b.adopt("b", 10, true).await.unwrap()), ["of-a"]);
    });
}

#[test]
fn a_retry_is_queued_when_its_time_has_come() {
    run(async {
        let place = Place::postgres();
        let store = connect(&place.url).await;
        submit(&store, queued("t", "sh", Normal)).await;
        let mut record = claim(&store, "m", &["e1"]).await.remove(0);
        record.state.version += 1;
        (record.state.assignment, record.state.not_before_ms) = (None, Some(5_000));
        record.state.release();
        assert_eq!(persist(&store, &record).await, ChangeOutcome::Yes);
        let at = |due_ms| Claim { due_ms, ..claim_of("m", vec![slots(None, &["e1"])]) };
        for early in [None, Some(4_999)] {
            assert_eq!(store.claim(at(early)).await.unwrap().tasks, []);
            assert_eq!(store.queue_position(&record.id, 10).await.unwrap(), None);
        }
        let claimed = store.claim(at(Some(5_000))).await.unwrap().tasks;
        assert_eq!((claimed.len(), claimed[0].state.not_before_ms), (1, None));
    });
}

#[test]
fn positions_are_counted_up_to_a_limit() {
    run(async {
        let place = Place::postgres();
        let store = connect(&place.url).await;
        for (name, priority) in [("a", Normal), ("b", Low), ("c", Normal), ("d", High)] {
            let mut new = queued(name, "sh", priority);
            new.record.state.queued_ms = if name == "b" { 1 } else { 7 };
            submit(&store, new).await;
        }
        submit(&store, task("owned", "true", 1)).await;
        for (name, ahead) in
            [("d", Some(0)), ("a", Some(1)), ("c", Some(2)), ("b", Some(3)), ("owned", None)]
        {
            assert_eq!(store.queue_position(&id(name), 100).await.unwrap(), ahead, "{name}");
        }
        assert_eq!(store.queue_position(&id("b"), 2).await.unwrap(), Some(2));
        let depth = store.queue_depth(100).await.unwrap();
        assert_eq!((depth.waiting, depth.oldest_ms), ([0, 1, 2, 1], Some(1)));
        assert_eq!(store.queue_depth(1).await.unwrap().waiting, [0, 1, 1, 1]);
        claim(&store, "m", &["e1"; 3]).await;
        assert_eq!(store.queue_position(&id("b"), 100).await.unwrap(), Some(0));
    });
}

#[test]
fn other_managers_are_told_of_what_was_queued_also_after_a_reconnect() {
    run(async {
        let server = Postgres::shared();
        let [a, b] = [
            connect(&server.url("schema=hints")).await,
            connect(&server.url("schema=hints&application_name=hinted")).await,
        ];
        let first = timeout(SOON, b.hint()).await.unwrap();
        assert!(first.queued && first.handed_over, "it has just begun to listen: {first:?}");
        submit(&a, queued("t", "sh", Normal)).await;
        let hint = timeout(SOON, b.hint()).await.unwrap();
        assert!(hint.queued && !hint.handed_over, "{hint:?}");
        let config: tokio_postgres::Config = server.url("").parse().unwrap();
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
            WHERE application_name = 'hinted' AND query LIKE 'LISTEN%'";
        assert_eq!(client.query(cut, &[]).await.unwrap().len(), 1);
        let again = timeout(SOON, b.hint()).await.unwrap();
        assert!(again.queued && again.handed_over, "what it has missed: {again:?}");
        submit(&a, queued("u", "sh", Normal)).await;
        assert!(timeout(SOON, b.hint()).await.unwrap().queued);
    });
}

#[test]
fn what_runs_is_handed_over_to_whoever_knows_its_executor() {
    run(async {
        let place = Place::postgres();
        let [a, b] = [connect(&place.url).await, connect(&place.url).await];
        for (store, owner) in [(&a, "a"), (&b, "b")] {
            store.beat(owner, LONG).await.unwrap();
        }
        for name in ["known", "unknown", "waits"] {
            submit(&a, queued(name, "sh", Normal)).await;
        }
        let mut known = claim(&a, "a", &["e1", "e2"]).await.remove(0);
        step(&a, &mut known, &accepted(1), 2).await;
        let known_to = |name: &str| vec![name.to_owned()];
        assert_eq!(b.take_over("b", &known_to("e1"), 10).await.unwrap(), [], "a has it");
        assert_eq!(a.hand_over("a", &known_to("e1")).await.unwrap(), 1);
        assert_eq!(b.take_over("b", &known_to("e3"), 10).await.unwrap(), []);
        assert_eq!(adopt_all(&b, "b", 10).await, [], "a is alive");
        let taken = b.take_over("b", &known_to("e1"), 10).await.unwrap();
        assert_eq!((taken.len(), &*taken[0].state.owner), (1, "b"));
        assert_eq!(taken[0].state.assignment, known.state.assignment, "with its fence");
        let late = after(&known, &ended(1, tidegate::task::TaskOutcome::Failed), 3);
        assert!(matches!(persist(&a, &late).await, ChangeOutcome::Conflict(Some(_))));
        a.beat("a", Duration::ZERO).await.unwrap();
        let adopted = adopt_all(&b, "b", 10).await;
        let names: Vec<_> = adopted.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(names, ["unknown"], "what waits is nobody's, and needs nobody's adoption");
        let waits = b.adopt_queued("b", 10).await.unwrap();
        assert_eq!((waits.len(), waits[0].id.as_str()), (1, "waits"), "for a queue of its own");
    });
}

/// Rows as the version before wrote them: what waited is nobody's now, what ran has its owner.
#[test]
fn a_database_of_the_version_before_is_brought_up_to_date() {
    run(async {
        let server = Postgres::shared();
        let url = server.url("schema=before_claims");
        connect(&url).await.close().await;
        let config: tokio_postgres::Config = server.url("").parse().unwrap();
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(BEFORE).await.unwrap();
        let store = connect(&url).await;
        store.beat("old", LONG).await.unwrap();
        let waits = store.get(&id("waits")).await.unwrap().unwrap();
        assert_eq!((waits.state.status, &*waits.state.owner), (TaskStatus::Queued, ""));
        for (name, position) in [("high", Some(0)), ("waits", Some(1)), ("later", None)] {
            let found = store.queue_position(&id(name), 10).await.unwrap();
            assert_eq!(found, position, "{name}");
        }
        let python = claim_of("m", vec![slots(Some(&["python"]), &["e1"; 5])]);
        assert_eq!(short(&store.claim(python).await.unwrap().tasks), [("waits", "e1")]);
        let due = Claim { due_ms: Some(9_000), ..claim_of("m", vec![slots(None, &["e1"; 5])]) };
        let claimed = store.claim(due).await.unwrap().tasks;
        assert_eq!(short(&claimed), [("high", "e1"), ("later", "e1")]);
        let sent = store.get(&id("sent")).await.unwrap().unwrap();
        assert_eq!(&*sent.state.owner, "old", "an executor may have it");
        assert_eq!(store.hand_over("old", &["http://e".to_owned()]).await.unwrap(), 0);
        assert!(
            store.get(&id("damaged")).await.is_err(),
            "told to whoever asks, and to nobody else"
        );
    });
}

/// The tables of schema version 2, with rows.
const BEFORE: &str = r#"
DROP INDEX before_claims_tasks.tasks_queue, before_claims_tasks.tasks_due, before_claims_tasks.tasks_handed_over;
ALTER TABLE before_claims_tasks.tasks DROP COLUMN priority, DROP COLUMN runtime, DROP COLUMN not_before_ms,
    DROP COLUMN executor, DROP COLUMN claimed;
DELETE FROM before_claims_tasks.migrations WHERE version = 3;
INSERT INTO before_claims_tasks.tasks (id, fingerprint, version, status, owner, life, state) VALUES
    ('waits', '', 1, 0, 'old', 1, '{"version":1,"status":"queued","owner":"old","attempt":0,"failures":0,"losses":0,"submitted_ms":1,"queued_ms":1,"cancel_requested":false}'),
    ('high', '', 1, 0, 'old', 1, '{"version":1,"status":"queued","owner":"old","attempt":0,"failures":0,"losses":0,"submitted_ms":1,"queued_ms":1,"cancel_requested":false}'),
    ('later', '', 4, 0, 'old', 1, '{"version":4,"status":"queued","owner":"old","attempt":1,"failures":1,"losses":0,"submitted_ms":1,"queued_ms":1,"not_before_ms":9000,"cancel_requested":false}'),
    ('sent', '', 2, 0, 'old', 1, '{"version":2,"status":"queued","owner":"old","attempt":1,"failures":0,"losses":0,"assignment":{"executor":"http://e"},"submitted_ms":1,"queued_ms":1,"cancel_requested":false}'),
    ('damaged', '', 1, 0, 'old', 1, '{"version":');
INSERT INTO before_claims_tasks.specs (id, spec) VALUES
    ('waits', '{"runtime":"python","code":"\"priority\":\"low\"","env":{"priority":"low"},"priority":"normal","timeout_ms":1000,"retries":0}'),
    ('high', '{"runtime":"sh","code":"a\u0000","priority":"high","timeout_ms":1000,"retries":2}'),
    ('later', '{"runtime":"sh","code":"true","priority":"low","timeout_ms":1000,"retries":2}'),
    ('sent', '{"runtime":"sh","code":"true","priority":"low","timeout_ms":1000,"retries":2}'),
    ('damaged', '{"runtime":');
"#;
