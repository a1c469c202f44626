//! What only a folder can do wrong.

use crate::place::run;
use crate::samples::*;
use crate::support::folder::TempFolder;
use fjall::{Database, KeyspaceCreateOptions, PersistMode};
use std::fs;
use std::path::Path;
use std::time::Instant;
use tidegate::store::{FjallStore, StoreError};
use tidegate::task::{TaskOutcome, TaskStatus};
use tidegate::tasks::{FjallTaskStore, Submission, TaskQuery, TaskStore};

async fn open(folder: &Path) -> FjallTaskStore {
    FjallTaskStore::open(folder).await.unwrap()
}

#[test]
fn a_folder_in_use_is_refused_and_free_after_the_end() {
    run(async {
        let folder = TempFolder::new("tasks");
        let store = open(folder.path()).await;
        let error = FjallTaskStore::open(folder.path()).await.unwrap_err();
        assert!(error.is_temporary() && error.to_string().contains("another process"), "{error}");
        store.close().await;
        open(folder.path()).await.close().await;
    });
}

#[test]
fn what_is_no_folder_of_tasks_is_refused() {
    run(async {
        let folder = TempFolder::new("tasks");
        FjallStore::open(folder.path()).await.unwrap().close().await;
        let unusable = async |text: &str| {
            let error = FjallTaskStore::open(folder.path()).await.unwrap_err();
            assert!(matches!(&error, StoreError::Unusable(what) if what.contains(text)), "{error}");
        };
        unusable("no tidegate tasks").await;
        fs::write(folder.path().join("version"), "tidegate tasks 2\n").unwrap();
        unusable("version 2").await;
        fs::remove_file(folder.path().join("version")).unwrap();
        unusable("empty folder").await;
    });
}

/// Writes into the engine's files behind the store's back.
fn damage(folder: &Path, keyspace: &str, key: &str, value: Option<&[u8]>) {
    let db = Database::builder(folder.join("data")).open().unwrap();
    let keyspace = db.keyspace(keyspace, KeyspaceCreateOptions::default).unwrap();
    match value {
        Some(value) => keyspace.insert(key, value).unwrap(),
        None => keyspace.remove(key).unwrap(),
    }
    db.persist(PersistMode::SyncAll).unwrap();
}

/// Every call about a damaged task fails by its name, and every other task is as well as before.
#[test]
fn a_damaged_record_is_an_error_that_names_its_task() {
    run(async {
        for (keyspace, value) in [
            ("states", Some(&b"\x01cut"[..])),
            ("states", Some(&[0xff; 40][..])),
            ("specs", Some(&b"\x01"[..])),
            ("specs", None),
            ("outputs", Some(&b"\x01\x01\x00"[..])),
        ] {
            let folder = TempFolder::new("damaged");
            let store = open(folder.path()).await;
            let mut bad = submit(&store, keyed("bad", "true", "k")).await;
            finish(&store, &mut bad, TaskOutcome::Failed, 5).await;
            let good = submit(&store, task("good", "true", 1)).await;
            store.close().await;
            damage(folder.path(), keyspace, "bad", value);
            let store = open(folder.path()).await;
            let all = TaskQuery { limit: 10, ..TaskQuery::default() };
            let mut errors = vec![store.output(&bad.id).await.err()];
            if keyspace != "outputs" {
                errors = vec![
                    store.get(&bad.id).await.err(),
                    store.list(&all).await.err(),
                    store.submit(keyed("bad", "true", "k")).await.err(),
                    store.submit(keyed("new", "true", "k")).await.err(),
                    store.forget(u64::MAX, 5).await.err(),
                ];
            }
            for error in errors {
                let error = error.expect("it is damaged");
                let named =
                    matches!(&error, StoreError::Unusable(text) if text.contains("task bad"));
                assert!(named, "{keyspace}: {error}");
            }
            assert_eq!(store.get(&good.id).await.unwrap(), Some(good));
            assert_eq!(store.submit(task("next", "true", 1)).await, Ok(Submission::New));
        }
    });
}

/// What is queued is found without a look at what has ended: the time does not grow with that.
#[test]
fn few_among_many_are_found_fast() {
    run(async {
        let folder = TempFolder::new("many");
        let store = std::sync::Arc::new(open(folder.path()).await);
        let mut wanted = Vec::new();
        let mut rates = Vec::new();
        for round in 0..2_u32 {
            let callers = (0..32).map(|caller| {
                let store = store.clone();
                tokio::spawn(async move {
                    for number in 0..100 {
                        let name = format!("{round}-{caller}-{number}");
                        let mut record = submit(&*store, task(&name, "true", 1)).await;
                        finish(&*store, &mut record, TaskOutcome::Succeeded, 5).await;
                    }
                })
            });
            let callers: Vec<_> = callers.collect();
            for caller in callers {
                caller.await.unwrap();
            }
            let name = format!("waits-{round}");
            submit(&*store, task(&name, "true", 1)).await;
            wanted.insert(0, name);
            let fastest = async |status| {
                let mut fastest = f64::MAX;
                for _ in 0..10 {
                    let start = Instant::now();
                    let found = names(&*store, status, 1_000).await;
                    fastest = start.elapsed().as_secs_f64().min(fastest);
                    assert!(status.is_none() || found == wanted, "{found:?}");
                }
                fastest
            };
            rates.push(fastest(None).await / fastest(Some(TaskStatus::Queued)).await);
        }
        // Whoever looks at all 3,200 or 6,400 that have ended takes longer than for a page of 1,000 of
        // them: below 1.
        assert!(rates.iter().all(|rate| *rate > 1.0), "{rates:?}");
    });
}
