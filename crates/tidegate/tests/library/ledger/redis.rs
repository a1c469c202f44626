//! What can befall a Redis, and what a ledger makes of it.

use super::place::*;
use crate::support::redis::{PASSWORD, Redis};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tidegate::ledger::{Acquired, AnyLedger, Ledger, LedgerError, RedisLedger};
use tokio::time::Instant;

/// How long a call may take where a test waits for its failure.
const SOON_MS: u64 = 300;
/// So long that only a test which has failed waits for it, on however busy a machine.
const LATE_MS: u64 = 30_000;

async fn open(server: &Redis) -> AnyLedger {
    open_for(server, LATE_MS).await.unwrap()
}

async fn open_for(server: &Redis, timeout_ms: u64) -> Result<AnyLedger, LedgerError> {
    AnyLedger::open(&server.url(&format!("timeout_ms={timeout_ms}"))).await
}

/// Asks until the server is there again, as a manager does.
async fn until_reached<T>(ask: impl AsyncFn() -> Result<T, LedgerError>) -> T {
    until(async || match ask().await {
        Ok(answer) => Some(answer),
        Err(LedgerError::Unavailable(_)) => None,
        Err(other) => panic!("{other}"),
    })
    .await
}

#[test]
fn a_server_that_is_killed_and_comes_back_empty() {
    run(async {
        let mut server = Redis::start(&[]);
        let ledger = open(&server).await;
        ledger.declare("red", 2).await.unwrap();
        let before = granted(&ledger, &request("a@1", &["red"], LONG)).await;
        granted(&ledger, &request("b@1", &["red"], LONG)).await;
        waits_behind(&ledger, &request("c@1", &["red"], LONG)).await;
        server.crash();
        for _ in 0..20 {
            let answer = ledger.acquire(&request("c@1", &["red"], LONG)).await;
            assert!(is_unavailable(&answer), "{answer:?}");
        }
        assert!(server.run());
        // It has forgotten the leases and the executor: a manager declares it again, as it does all the time.
        assert!(!until_reached(async || ledger.renew(&before, LONG).await).await);
        waits_behind(&ledger, &request("c@1", &["red"], LONG)).await;
        ledger.declare("red", 2).await.unwrap();
        let after = granted(&ledger, &request("c@1", &["red"], LONG)).await;
        assert!(after.fence > before.fence, "fences rise all the same");
        assert!(!ledger.release(&before).await.unwrap(), "what was before frees nothing");
        granted(&ledger, &request("a@1", &["red"], LONG)).await;
        waits_behind(&ledger, &request("d@1", &["red"], LONG)).await;
        assert_eq!(ledger.held("red").await, Ok(2), "never more than it has");
    });
}

#[test]
fn a_server_that_is_killed_and_keeps_its_data_keeps_the_leases() {
    run(async {
        let mut server = Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]);
        let ledger = open(&server).await;
        ledger.declare("red", 1).await.unwrap();
        let lease = granted(&ledger, &request("a@1", &["red"], LONG)).await;
        waits_behind(&ledger, &request("b@1", &["red"], LONG)).await;
        server.crash();
        assert!(server.run());
        assert!(until_reached(async || ledger.renew(&lease, LONG).await).await);
        assert_eq!(waits_behind(&ledger, &request("c@1", &["red"], LONG)).await, 1);
        assert!(ledger.release(&lease).await.unwrap());
        assert!(granted(&ledger, &request("b@1", &["red"], LONG)).await.fence > lease.fence);
    });
}

/// Takes a slot and gives it back, however often the server goes away meanwhile.
async fn take_a_turn(ledger: &AnyLedger, holder: &str) {
    let wanted = request(holder, &["red"], LONG);
    let deadline = Instant::now() + PATIENCE;
    let pause = || tokio::time::sleep(Duration::from_millis(5));
    let lease = loop {
        match ledger.acquire(&wanted).await {
            Ok(Acquired::Granted(lease)) => break lease,
            Ok(Acquired::Waiting { .. }) | Err(LedgerError::Unavailable(_)) => pause().await,
            Err(other) => panic!("{other}"),
        }
        assert!(Instant::now() < deadline, "{holder} has no turn");
    };
    // Once it was done and not heard of, it is false the second time.
    while is_unavailable(&ledger.release(&lease).await) {
        assert!(Instant::now() < deadline, "{holder} can't release");
        pause().await;
    }
}

#[test]
fn a_crowd_lives_through_kills() {
    run(async {
        let mut server = Redis::start(&["--appendonly", "yes", "--appendfsync", "always"]);
        open(&server).await.declare("red", 2).await.unwrap();
        let mut crowd = tokio::task::JoinSet::new();
        let turns = Arc::new(AtomicU32::new(0));
        for task in 0..4 {
            let (ledger, turns) = (open(&server).await, turns.clone());
            crowd.spawn(async move {
                for number in 0..50 {
                    take_a_turn(&ledger, &format!("t{task}-{number}@1")).await;
                    turns.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        for enough in [30, 90] {
            until(async || (turns.load(Ordering::SeqCst) >= enough).then_some(())).await;
            server.crash();
            assert!(server.run());
        }
        while let Some(done) = crowd.join_next().await {
            done.unwrap();
        }
        assert_eq!(turns.load(Ordering::SeqCst), 200);
        assert_eq!(open(&server).await.held("red").await, Ok(0), "no slot leaked");
    });
}

#[test]
fn a_server_that_hangs_is_not_waited_for() {
    run(async {
        let server = Redis::start(&[]);
        let ledger = open(&server).await;
        ledger.declare("red", 1).await.unwrap();
        let lease = granted(&ledger, &request("a@1", &["red"], LONG)).await;
        let hasty = until(async || open_for(&server, SOON_MS).await.ok()).await;
        server.signal("-STOP");
        let began = Instant::now();
        for _ in 0..3 {
            assert!(is_unavailable(&hasty.renew(&lease, LONG).await));
        }
        let (one, two) = (request("b@1", &["red"], LONG), request("c@1", &["red"], LONG));
        let both = tokio::join!(hasty.acquire(&one), hasty.acquire(&two));
        assert!(is_unavailable(&both.0) && is_unavailable(&both.1));
        // Four calls one after the other, and a machine that is busy with other tests.
        assert!(began.elapsed() < Duration::from_millis(SOON_MS) * 4 * 10);
        hasty.changed().await;
        server.signal("-CONT");
        assert!(until_reached(async || hasty.renew(&lease, LONG).await).await);
        // What the server had not read while it hung it may do now: a place in the line, at most one for each.
        assert!(ledger.release(&lease).await.unwrap());
        let next = turn(&ledger, &one).await;
        waits_behind(&ledger, &two).await;
        assert!(ledger.release(&next).await.unwrap());
        turn(&ledger, &two).await;
        assert_eq!(ledger.held("red").await, Ok(1));
    });
}

#[test]
fn fences_rise_over_a_flush() {
    run(async {
        let server = Redis::start(&[]);
        let ledger = open(&server).await;
        let mut last = 0;
        for round in 0..5 {
            ledger.declare("red", 1).await.unwrap();
            let lease = granted(&ledger, &request(&format!("a{round}@1"), &["red"], LONG)).await;
            assert!(lease.fence > last, "{} after {last}", lease.fence);
            assert_eq!(ledger.latest_fence().await, Ok(lease.fence));
            last = lease.fence;
            assert!(server.command("FLUSHALL").contains("+OK"));
            assert!(!ledger.renew(&lease, LONG).await.unwrap());
        }
    });
}

#[test]
fn scripts_that_were_forgotten_are_sent_again() {
    run(async {
        let server = Redis::start(&[]);
        let ledger = open(&server).await;
        ledger.declare("red", 1).await.unwrap();
        assert!(server.command("SCRIPT FLUSH").contains("+OK"));
        let lease = granted(&ledger, &request("a@1", &["red"], LONG)).await;
        assert!(ledger.release(&lease).await.unwrap());
    });
}

#[test]
fn word_of_changes_is_heard_again_after_a_lost_connection() {
    run(async {
        let server = Redis::start(&[]);
        let (here, there) = (open(&server).await, open(&server).await);
        here.declare("red", 1).await.unwrap();
        let lease = granted(&there, &request("a@1", &["red"], LONG)).await;
        let waiter = request("b@1", &["red"], LONG);
        waits_behind(&here, &waiter).await;
        for kind in ["normal", "pubsub"] {
            server.command(&format!("CLIENT KILL TYPE {kind} SKIPME yes"));
        }
        until_reached(async || here.acquire(&waiter).await).await;
        until_reached(async || there.renew(&lease, LONG).await).await;
        assert_eq!(
            server.command("PUBSUB NUMSUB {tidegate:slots}:changed").matches(":2").count(),
            1
        );
        assert!(there.release(&lease).await.unwrap());
        let next = turn(&here, &waiter).await;
        assert!(here.release(&next).await.unwrap());
        hand_to_and_fro(here, there).await;
    });
}

#[test]
fn installations_on_one_server_do_not_meet() {
    run(async {
        let server = Redis::shared();
        let one =
            RedisLedger::connect(&server.url("namespace=one&timeout_ms=30000")).await.unwrap();
        let two =
            RedisLedger::connect(&server.url("namespace=two&timeout_ms=30000")).await.unwrap();
        one.declare("red", 1).await.unwrap();
        let wanted = request("a@1", &["red"], LONG);
        assert!(matches!(one.acquire(&wanted).await, Ok(Acquired::Granted(_))));
        assert_eq!(two.acquire(&wanted).await, Ok(Acquired::Waiting { ahead: 0 }));
        assert_eq!((one.held("red").await, two.held("red").await), (Ok(1), Ok(0)));
        assert!(!one.withdraw(&wanted.holder).await.unwrap());
        assert!(two.withdraw(&wanted.holder).await.unwrap());
    });
}

#[test]
fn nothing_grows_for_ever() {
    run(async {
        let server = Redis::start(&[]);
        let ledger = open(&server).await;
        ledger.declare("red", 5).await.unwrap();
        let crashing =
            (0..400).map(|number| request(&format!("t{number}@1"), &["red", "x"], SHORT));
        for holder in crashing {
            until_reached(async || ledger.acquire(&holder).await).await;
        }
        until_held(&ledger, "red", 0).await;
        let size = |command: &str, key: &str| {
            server.command(&format!("{command} {{tidegate:slots}}:{key}")).trim().to_owned()
        };
        until(async || {
            ledger.held("red").await.unwrap();
            (size("ZCARD", "places") == ":0" && size("ZCARD", "leases") == ":0").then_some(())
        })
        .await;
        for (command, key) in
            [("ZCARD", "held"), ("ZCARD", "line"), ("HLEN", "lease"), ("HLEN", "place")]
        {
            assert_eq!(size(command, key), ":0", "{key}");
        }
        let lease = granted(&ledger, &request("last@1", &["red"], LONG)).await;
        assert!(ledger.renew(&lease, LONG).await.unwrap());
        for key in ["slots", "known", "lease", "leases", "held", "fence", "arrival"] {
            let left = size("PTTL", key).trim_start_matches(':').parse::<i64>().unwrap();
            assert!(left > 86_400_000, "{key} is kept for {left} ms");
        }
        assert!(
            server.command("DBSIZE").trim().trim_start_matches(':').parse::<u32>().unwrap() <= 10
        );
    });
}

#[test]
fn half_of_a_lease_is_cleared_away_by_the_executor_s_word() {
    run(async {
        let server = Redis::start(&[]);
        let ledger = open(&server).await;
        ledger.declare("red", 1).await.unwrap();
        granted(&ledger, &request("a@1", &["red"], LONG)).await;
        // As a server does that may drop keys when it is short of memory.
        assert!(
            server.command("DEL {tidegate:slots}:lease {tidegate:slots}:leases").contains(":2")
        );
        waits_behind(&ledger, &request("b@1", &["red"], LONG)).await;
        assert_eq!(ledger.reconcile("red", &[], u64::MAX).await, Ok(0));
        granted(&ledger, &request("b@1", &["red"], LONG)).await;
    });
}

#[test]
fn a_password_is_never_shown() {
    run(async {
        let server = Redis::start(&[]);
        let port = server.port();
        let ledger = open(&server).await;
        assert!(!format!("{ledger:?}").contains(PASSWORD));
        let wrong = format!("redis://:not-{PASSWORD}@127.0.0.1:{port}/0");
        let refused = AnyLedger::open(&wrong).await.unwrap_err();
        assert!(matches!(refused, LedgerError::Unusable(_)), "{refused}");
        assert!(!refused.to_string().contains(PASSWORD), "{refused}");
        let none = AnyLedger::open(&format!("redis://127.0.0.1:{port}/0")).await.unwrap_err();
        assert!(matches!(none, LedgerError::Unusable(_)), "{none}");
        drop(server);
        let gone = ledger.latest_fence().await.unwrap_err();
        assert!(matches!(gone, LedgerError::Unavailable(_)), "{gone}");
        assert!(!gone.to_string().contains(PASSWORD) && gone.to_string().contains("***"), "{gone}");
        let tls = AnyLedger::open(&format!("rediss://:{PASSWORD}@127.0.0.1:{port}")).await;
        let tls = tls.unwrap_err().to_string();
        assert!(tls.contains("TLS") && !tls.contains(PASSWORD), "{tls}");
    });
}
