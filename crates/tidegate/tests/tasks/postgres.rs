//! What only a database can do wrong.

use crate::cutter::Cutter;
use crate::place::{Place, run};
use crate::samples::*;
use crate::support::postgres::{PASSWORD, Postgres};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate::store::{PostgresStore, StoreError};
use tidegate::task::TaskOutcome;
use tidegate::tasks::{ChangeOutcome, NewTask, PostgresTaskStore, Submission, TaskStore};

const LONG: Duration = Duration::from_secs(3_600);

async fn connect(url: &str) -> PostgresTaskStore {
    PostgresTaskStore::connect(url).await.unwrap()
}

fn owned(name: &str, owner: &str) -> NewTask {
    let mut new = task(name, "true", 1);
    new.record.state.owner = owner.into();
    new
}

/// Somebody else at the same database.
async fn someone(server: &Postgres) -> tokio_postgres::Client {
    let config: tokio_postgres::Config = server.url("").parse().unwrap();
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Submits until it works: whoever is not sure asks again.
async fn submit_until_it_works(store: &PostgresTaskStore, new: &NewTask) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match store.submit(new.clone()).await {
            Ok(Submission::New | Submission::Same(_)) => return,
            Err(error) if error.is_temporary() => {
                assert!(Instant::now() < deadline, "{error}");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn each_task_of_a_manager_that_is_gone_is_adopted_by_one() {
    run(async {
        let place = Place::postgres();
        let [dead, a, b] =
            [connect(&place.url).await, connect(&place.url).await, connect(&place.url).await];
        dead.beat("dead", LONG).await.unwrap();
        for number in 0..60 {
            submit(&dead, owned(&format!("t{number}"), "dead")).await;
        }
        for (store, owner) in [(&a, "a"), (&b, "b")] {
            store.beat(owner, LONG).await.unwrap();
            submit(store, owned(&format!("of-{owner}"), owner)).await;
            assert_eq!(adopt_all(store, owner, 10).await, [], "everybody is alive");
        }
        // Its time is over by the database's clock.
        dead.beat("dead", Duration::ZERO).await.unwrap();
        let (by_a, by_b) = tokio::join!(adopt_all(&a, "a", 3), adopt_all(&b, "b", 3));
        let mut owners = BTreeMap::new();
        for record in by_a.iter().chain(&by_b) {
            let twice = owners.insert(record.id.clone(), record.state.owner.clone());
            assert_eq!((twice, record.state.version), (None, 2), "{record:?}");
            assert_eq!(a.get(&record.id).await.unwrap().as_ref(), Some(record));
        }
        assert_eq!(owners.len(), 60, "the skipped are found by whoever asks again");
        // The zombie is told.
        let late = after(&owned("t1", "dead").record, &dispatching(), 3);
        let ChangeOutcome::Conflict(Some(state)) = persist(&dead, &late).await else {
            panic!("it was kept")
        };
        assert!(["a", "b"].contains(&&*state.owner), "{state:?}");
        assert_eq!(adopt_all(&dead, "dead", 10).await, [], "a and b are alive");
    });
}

#[test]
fn a_manager_that_never_said_it_lives_is_gone() {
    run(async {
        let place = Place::postgres();
        let [silent, other] = [connect(&place.url).await, connect(&place.url).await];
        submit(&silent, owned("t", "silent")).await;
        assert_eq!(adopt_all(&silent, "silent", 10).await, [], "its own, of this life");
        assert_eq!(adopt_all(&other, "other", 10).await.len(), 1);
    });
}

#[test]
fn managers_at_the_same_time_share_tasks_keys_and_counts() {
    run(async {
        let place = Place::postgres();
        let stores = [connect(&place.url).await, connect(&place.url).await];
        let stores = stores.map(Arc::new);
        let callers = (0..32_usize).map(|caller| {
            let store = stores[caller % 2].clone();
            tokio::spawn(async move {
                let mut news = 0;
                for number in 0..20 {
                    // Names and keys in another order by each: what waits for another in a circle is tried again.
                    let number = (number * 7 + caller * 3) % 20;
                    let new = keyed(&format!("t{number}"), "true", &format!("k{}", 19 - number));
                    match store.submit(new).await.unwrap() {
                        Submission::New => news += 1,
                        Submission::Same(_) => {}
                        other => panic!("{other:?}"),
                    }
                }
                news
            })
        });
        let callers: Vec<_> = callers.collect();
        let mut news = 0;
        for caller in callers {
            news += caller.await.unwrap();
        }
        assert_eq!(news, 20);
        for store in &stores {
            assert_eq!(store.counts().await.unwrap(), [20, 0, 0, 0, 0, 0]);
        }
        let mut record = stores[0].get(&id("t1")).await.unwrap().unwrap();
        finish(&*stores[1], &mut record, TaskOutcome::Succeeded, 5).await;
        assert_eq!(stores[0].counts().await.unwrap(), [19, 0, 0, 1, 0, 0]);
    });
}

#[test]
fn counts_stay_right_when_they_are_folded() {
    run(async {
        let place = Place::postgres();
        for life in 0..40 {
            let store = connect(&place.url).await;
            let mut record = submit(&store, task(&format!("t{life}"), "true", 1)).await;
            if life % 2 == 0 {
                finish(&store, &mut record, TaskOutcome::Failed, 5).await;
            }
            assert_eq!(store.counts().await.unwrap().iter().sum::<u64>(), life + 1);
            store.close().await;
        }
        let store = connect(&place.url).await;
        assert_eq!(store.counts().await.unwrap(), [20, 0, 0, 0, 20, 0]);
    });
}

/// The server is told not to wait for its disk; a store's promise does not depend on that.
#[test]
fn what_was_acknowledged_survives_a_crash_of_the_server() {
    run(async {
        let mut server = Postgres::start(&["synchronous_commit=off", "wal_writer_delay=10s"]);
        let store = connect(&server.url("")).await;
        let mut records = Vec::new();
        for number in 0..20 {
            let mut record = submit(&store, task(&format!("t{number}"), "true", 1)).await;
            step(&store, &mut record, &dispatching(), 2).await;
            records.push(record);
        }
        server.crash();
        let error = store.submit(task("new", "true", 1)).await.unwrap_err();
        assert!(error.is_temporary(), "{error}");
        let error = store.get(&id("t1")).await.unwrap_err();
        assert!(error.is_temporary(), "{error}");
        assert!(server.run(), "{}", server.log());
        submit_until_it_works(&store, &task("new", "true", 1)).await;
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Err(error) = store.get(&id("t1")).await {
            assert!(error.is_temporary() && Instant::now() < deadline, "{error}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for record in records {
            assert_eq!(store.get(&record.id).await.unwrap(), Some(record));
        }
        assert_eq!(store.counts().await.unwrap(), [21, 0, 0, 0, 0, 0]);
    });
}

/// Connections are cut again and again, also while they commit: nothing acknowledged is lost, nothing is there
/// twice.
#[test]
fn connections_that_are_cut_at_any_moment_lose_and_double_nothing() {
    run(async {
        let server = Postgres::shared();
        let store = Arc::new(connect(&server.url("schema=cut&application_name=cut_tasks")).await);
        // Long enough to connect on most machines, and another moment each time.
        let pause = |cuts| Duration::from_micros(30_000 + cuts * 7_777 % 70_000);
        let cutter = Arc::new(Cutter::start(someone(&server).await, "cut_tasks", pause));
        let started = Instant::now();
        let callers = (0..8).map(|caller| {
            let (store, cutter) = (store.clone(), cutter.clone());
            tokio::spawn(async move {
                let mut kept = 0_u64;
                while started.elapsed() < Duration::from_secs(3) || cutter.cuts() <= 5 {
                    let name = format!("{caller}-{kept}");
                    submit_until_it_works(&store, &keyed(&name, "true", &name)).await;
                    cutter.progress();
                    kept += 1;
                }
                kept
            })
        });
        let callers: Vec<_> = callers.collect();
        let mut kept = 0;
        for caller in callers {
            kept += caller.await.unwrap();
        }
        cutter.stop().await;
        let store = connect(&server.url("schema=cut")).await;
        assert_eq!(store.counts().await.unwrap(), [kept, 0, 0, 0, 0, 0]);
        assert_eq!(names(&store, None, 1_000).await.len() as u64, kept);
    });
}

#[test]
fn both_kinds_of_store_live_at_one_address() {
    run(async {
        let place = Place::postgres();
        let usage = PostgresStore::connect(&place.url).await.unwrap();
        let tasks = connect(&place.url).await;
        submit(&tasks, task("t", "true", 1)).await;
        let shown = format!("{tasks:?}");
        assert!(shown.contains("***") && !shown.contains(PASSWORD), "{shown}");
        usage.close().await;
        tasks.close().await;
        let long = place.url.replace("schema=", &format!("schema={}_", "x".repeat(50)));
        let error = PostgresTaskStore::connect(&long).await.unwrap_err();
        assert!(
            matches!(&error, StoreError::Unusable(text) if text.contains("too long")),
            "{error}"
        );
    });
}

#[test]
fn a_newer_schema_and_a_damaged_row_are_told() {
    run(async {
        let server = Postgres::shared();
        let store = connect(&server.url("schema=damaged")).await;
        submit(&store, task("bad", "true", 1)).await;
        let client = someone(&server).await;
        let update = "UPDATE damaged_tasks.tasks SET state = '{\"version\":' WHERE id = 'bad'";
        client.execute(update, &[]).await.unwrap();
        let again = store.submit(task("bad", "true", 1)).await;
        for error in [store.get(&id("bad")).await.unwrap_err(), again.unwrap_err()] {
            assert!(
                matches!(&error, StoreError::Unusable(text) if text.contains("task bad")),
                "{error}"
            );
        }
        let newer = "INSERT INTO damaged_tasks.migrations (version) VALUES (7)";
        client.execute(newer, &[]).await.unwrap();
        let error = PostgresTaskStore::connect(&server.url("schema=damaged")).await.unwrap_err();
        assert!(
            matches!(&error, StoreError::Unusable(text) if text.contains("version 7")),
            "{error}"
        );
    });
}

/// A server that accepts and then says nothing. Time is not real here: waiting costs none.
#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!("postgres://tester:{PASSWORD}@127.0.0.1:{port}/postgres?sslmode=disable");
    let error = PostgresTaskStore::connect(&url).await.unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("no connection"), "{error}");
}
