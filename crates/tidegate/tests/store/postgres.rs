use crate::cutter::Cutter;
use crate::place::run;
use crate::records::*;
use crate::reserved::Reserved;
use crate::support::postgres::{PASSWORD, Postgres};
use std::fs;
use std::time::{Duration, Instant};
use tidegate::store::{Appended, PostgresStore, Store, StoreError, UsageBy};
use tokio_postgres::{Client, NoTls};

async fn connect(url: &str) -> PostgresStore {
    PostgresStore::connect(url).await.unwrap()
}

async fn refusal(url: &str) -> StoreError {
    let error = PostgresStore::connect(url).await.err().unwrap();
    assert!(!format!("{error} {error:?}").contains(PASSWORD), "{error}");
    error
}

/// Somebody else who uses the same database.
async fn someone(server: &Postgres) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(""), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn append_until_it_works(store: &PostgresStore, seq: u64) -> Vec<Appended> {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match store.append(vec![one("a", seq)]).await {
            Ok(outcomes) => return outcomes,
            Err(unstored) => {
                assert!(unstored.error.is_temporary(), "{}", unstored.error);
                assert_eq!(unstored.batches, [one("a", seq)]);
                assert!(Instant::now() < deadline, "{}", unstored.error);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

#[test]
fn a_database_that_is_gone_is_waited_for() {
    run(async {
        let mut server = Postgres::start(&[]);
        let store = connect(&server.url("")).await;
        append(&store, vec![one("a", 1)]).await;
        server.stop();
        for _ in 0..3 {
            let unstored = store.append(vec![one("a", 2)]).await.unwrap_err();
            assert!(unstored.error.is_temporary(), "{unstored}");
            assert_eq!(unstored.batches, [one("a", 2)]);
            assert!(!format!("{unstored:?}").contains(PASSWORD));
            assert!(store.usage(&all(UsageBy::Tenant)).await.unwrap_err().is_temporary());
            assert!(store.seen("a").await.is_err());
        }
        assert!(server.run(), "{}", server.log());
        assert_eq!(append_until_it_works(&store, 2).await, [Appended::New]);
        assert_eq!(count(&store).await, 2);
    });
}

/// The server is told not to wait for its disk; a store's promise does not depend on that.
#[test]
fn what_was_acknowledged_survives_a_crash_of_the_server() {
    run(async {
        let mut server = Postgres::start(&["synchronous_commit=off", "wal_writer_delay=10s"]);
        let store = connect(&server.url("")).await;
        for seq in 1..=20 {
            append(&store, vec![one("a", seq)]).await;
        }
        server.crash();
        assert!(server.run(), "{}", server.log());
        assert_eq!(append_until_it_works(&store, 21).await, [Appended::New]);
        assert_eq!((count(&store).await, store.seen("a").await.unwrap().low()), (21, 21));
    });
}

/// Connections are cut again and again, also while they commit: what comes again still counts once.
#[test]
fn connections_that_are_cut_at_any_moment_lose_and_double_nothing() {
    run(async {
        let server = Postgres::shared();
        let store = connect(&server.url("schema=cut&application_name=cut")).await;
        let pause = |cuts| Duration::from_micros(cuts * 777 % 9_000);
        let cutter = Cutter::start(someone(&server).await, "cut", pause);
        let started = Instant::now();
        let mut seq = 0;
        while started.elapsed() < Duration::from_secs(4) || cutter.cuts() <= 5 {
            seq += 1;
            append_until_it_works(&store, seq).await;
            cutter.progress();
        }
        cutter.stop().await;
        append_until_it_works(&store, seq + 1).await;
        assert_eq!(store.seen("a").await.unwrap().low(), seq + 1);
        assert_eq!(count(&store).await, seq + 1);
    });
}

#[test]
fn several_writers_count_each_batch_once() {
    run(async {
        let server = Postgres::shared();
        let url = server.url("schema=writers");
        // All at once, on an empty database: each wants to make the tables.
        let tasks = (0..6_u64).map(|writer| {
            let url = url.clone();
            tokio::spawn(async move {
                let store = connect(&url).await;
                let mut new = 0;
                for seq in 1..=40 {
                    // Two senders in either order: locks must not be taken in a circle.
                    let mut batches = vec![one("a", seq), one("b", seq)];
                    batches.rotate_left((writer % 2) as usize);
                    let outcomes = append(&store, batches).await;
                    new += outcomes.iter().filter(|outcome| **outcome == Appended::New).count();
                }
                new
            })
        });
        let mut new = 0;
        for task in tasks.collect::<Vec<_>>() {
            new += task.await.unwrap();
        }
        assert_eq!((new, count(&connect(&url).await).await), (80, 80));
    });
}

#[test]
fn sums_of_past_minutes_become_one_row() {
    run(async {
        let server = Postgres::shared();
        let store = connect(&server.url("schema=folded")).await;
        let rows = || async {
            let client = someone(&server).await;
            let counts =
                "SELECT (SELECT count(*) FROM folded.sums), (SELECT count(*) FROM folded.totals)";
            let row = client.query_one(counts, &[]).await.unwrap();
            (row.get::<_, i64>(0), row.get::<_, i64>(1))
        };
        for seq in 1..=255 {
            append(&store, vec![one("a", seq)]).await;
        }
        let before = usage(&store, &all(UsageBy::Both)).await;
        assert_eq!((rows().await, before[0].records), ((255, 255), 255));
        append(&store, vec![one("a", 256)]).await;
        let after = usage(&store, &all(UsageBy::Both)).await;
        assert_eq!((rows().await, after[0].records), ((1, 1), 256));
        let of_all = usage(&store, &all(UsageBy::Meter)).await;
        for row in [&after[0], &of_all[0]] {
            assert_eq!((row.records, row.amount), (256, number("128")));
        }
        assert_eq!(count(&store).await, 256);
    });
}

#[test]
fn the_totals_of_an_older_schema_are_made_and_an_older_writer_adds_to_them() {
    run(async {
        let server = Postgres::shared();
        let url = server.url("schema=older");
        append(&connect(&url).await, vec![one("a", 1), one("a", 2)]).await;
        let client = someone(&server).await;
        let older = "DROP TRIGGER sums_totals ON older.sums; DROP FUNCTION older.add_totals(); \
                     DROP TABLE older.totals; DELETE FROM older.migrations WHERE version = 4";
        client.batch_execute(older).await.unwrap();
        let store = connect(&url).await;
        for by in [UsageBy::Meter, UsageBy::Client] {
            assert_eq!(usage(&store, &all(by)).await[0].records, 2);
        }
        append(&store, vec![one("a", 3)]).await;
        let by_an_older_writer = "INSERT INTO older.sums (minute_ns, tenant, meter, currency, \
            records, fallbacks, quantity, amount, folded) \
            SELECT minute_ns, 'zeta', meter, currency, 5, 0, 5, 5, false FROM older.sums LIMIT 1";
        client.batch_execute(by_an_older_writer).await.unwrap();
        for by in [UsageBy::Meter, UsageBy::Client] {
            assert_eq!(usage(&store, &all(by)).await[0].records, 8);
        }
    });
}

#[test]
fn a_newer_or_foreign_schema_is_not_touched() {
    run(async {
        let server = Postgres::shared();
        let client = someone(&server).await;
        connect(&server.url("schema=newer")).await;
        client.batch_execute("INSERT INTO newer.migrations (version) VALUES (99)").await.unwrap();
        let error = refusal(&server.url("schema=newer")).await;
        assert!(
            matches!(&error, StoreError::Unusable(text) if text.contains("version 99")),
            "{error}"
        );
        let foreign = "CREATE SCHEMA foreign_one; CREATE TABLE foreign_one.records (thesis text)";
        client.batch_execute(foreign).await.unwrap();
        let error = refusal(&server.url("schema=foreign_one")).await;
        assert!(
            matches!(&error, StoreError::Unusable(text) if text.contains("another program")),
            "{error}"
        );
    });
}

/// Somebody who may not make tables uses those that are there.
#[test]
fn the_right_to_make_tables_is_needed_once() {
    run(async {
        let server = Postgres::shared();
        let client = someone(&server).await;
        connect(&server.url("schema=given")).await;
        let role = format!(
            "CREATE ROLE limited LOGIN PASSWORD '{PASSWORD}'; GRANT USAGE ON SCHEMA given TO limited; \
             GRANT ALL ON ALL TABLES IN SCHEMA given TO limited"
        );
        client.batch_execute(&role).await.unwrap();
        let url =
            |schema: &str| server.url(&format!("schema={schema}")).replace("tester", "limited");
        let store = connect(&url("given")).await;
        append(&store, vec![one("a", 1)]).await;
        assert_eq!(count(&store).await, 1);
        let error = refusal(&url("another")).await;
        assert!(
            matches!(&error, StoreError::Unusable(text) if text.contains("permission")),
            "{error}"
        );
    });
}

#[test]
fn a_wrong_password_is_told_and_not_shown() {
    run(async {
        let server = Postgres::shared();
        let url = server.url("").replace(PASSWORD, "wrong-but-secret");
        let error = refusal(&url).await;
        assert!(
            matches!(&error, StoreError::Unusable(text) if text.contains("password")),
            "{error}"
        );
        assert!(!error.to_string().contains("wrong-but-secret"));
        let store = connect(&server.url("schema=shown")).await;
        let shown = format!("{store:?}");
        assert!(shown.contains("***") && !shown.contains(PASSWORD), "{shown}");
    });
}

/// A server that accepts and then says nothing. Time is not real here: waiting costs none.
#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let url = format!("postgres://tester:{PASSWORD}@127.0.0.1:{port}/postgres?sslmode=disable");
    let error = refusal(&url).await;
    assert!(error.is_temporary() && error.to_string().contains("no connection"), "{error}");
}

#[test]
fn nobody_there_is_temporary() {
    run(async {
        let nobody = Reserved::new();
        let port = nobody.address.port();
        let error = refusal(&format!("postgres://tester:{PASSWORD}@127.0.0.1:{port}/x")).await;
        assert!(error.is_temporary(), "{error}");
    });
}

#[test]
fn tls_is_as_the_address_says() {
    let signed = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let files = crate::support::folder::TempFolder::new("tls");
    let (cert, key) = (files.path().join("server.crt"), files.path().join("server.key"));
    fs::write(&cert, signed.cert.pem()).unwrap();
    fs::write(&key, signed.signing_key.serialize_pem()).unwrap();
    let settings = [
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", cert.display()),
        format!("ssl_key_file={}", key.display()),
    ];
    Postgres::give_to_server(&key);
    let server = Postgres::start(&settings.each_ref().map(String::as_str));
    run(async {
        // Each under a name of its own: the server may show a connection for a while after its end.
        let encrypted = |name: &'static str, parameters: String| {
            let url = server.url(&format!("application_name={name}&{parameters}"));
            let server = &server;
            async move {
                let store = connect(&url).await;
                append(&store, vec![one("a", 1)]).await;
                let asked = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE application_name = $1";
                let row = someone(server).await.query_one(asked, &[&name]).await.unwrap();
                store.close().await;
                row.get::<_, bool>(0)
            }
        };
        let checked = format!("sslmode=require&sslrootcert={}", cert.display());
        assert!(encrypted("checked", checked).await);
        assert!(encrypted("preferred", "sslmode=prefer".into()).await);
        assert!(!encrypted("plain", "sslmode=disable".into()).await);
        let error = refusal(&server.url("sslmode=require")).await;
        assert!(error.to_string().contains("certificate"), "{error}");
        let missing = refusal(&server.url("sslmode=require&sslrootcert=/nowhere.pem")).await;
        assert!(
            matches!(&missing, StoreError::Unusable(text) if text.contains("nowhere")),
            "{missing}"
        );
    });
}
