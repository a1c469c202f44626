//! AD-37 at a worker: a real worker, whose manager is the test.

use super::bed::{run, ticking, until, worker};
use super::peer_manager::{Arrived, PeerManager, PeerSession, counter, has_end, signal};
use std::time::Duration;
use tidegate::MessageClass;
use tidegate::signal::BackpressureLevel::{self, Batch, None as Clear, Reject, Throttle};
use tidegate::signal::BackpressureSignal;
use tidegate_server::tasks::session::AnswerResult;
use tidegate_server::tasks::worker::SessionWorker;
use tokio::time::{Instant, sleep, timeout};

/// Longer than any test: a worker that obeys sends nothing more.
const FOR_EVER_MS: u32 = 60_000;
/// Longest time of what happens at once, on a busy machine; a small part of [`FOR_EVER_MS`].
const AT_ONCE: Duration = Duration::from_secs(6);

async fn joined(slots: u32) -> (PeerManager, SessionWorker, PeerSession) {
    let mut manager = PeerManager::bind().await;
    let worker = worker("w1", slots, manager.address());
    let session = manager.session().await;
    (manager, worker, session)
}

/// Signals a level, and waits until the worker follows it.
async fn set(session: &mut PeerSession, worker: &SessionWorker, given: BackpressureSignal) {
    session.ack(0, given).await;
    timeout(AT_ONCE, until(|| worker.link().level == given.level)).await.expect("in time");
}

/// Most batches that a worker with this delay may send in this time: one at each end is no delay apart.
fn most(time: Duration, delay_ms: u32) -> usize {
    usize::try_from(time.as_millis() / u128::from(delay_ms)).unwrap() + 2
}

/// Batches of a time with a signal, and the time that really passed.
async fn paced(session: &mut PeerSession, given: BackpressureSignal) -> (Vec<Arrived>, Duration) {
    let began = Instant::now();
    let batches = session.updates_for(Duration::from_millis(1_200), given).await;
    (batches, began.elapsed())
}

#[test]
fn ad37_every_arrow_of_the_flush_diagram_and_every_jump() {
    run(async {
        let (_manager, worker, mut session) = joined(1).await;
        let names = ["NO_BACKPRESSURE", "THROTTLED", "BATCH_ONLY", "REJECT"];
        for from in BackpressureLevel::ALL {
            for to in BackpressureLevel::ALL {
                set(&mut session, &worker, signal(from, 1, FOR_EVER_MS)).await;
                assert_eq!(worker.link().flush_state, names[from.index()]);
                set(&mut session, &worker, signal(to, 1, FOR_EVER_MS)).await;
                assert_eq!(worker.link().flush_state, names[to.index()], "from {from}");
            }
        }
    });
}

#[test]
fn ad37_none_sends_at_once_and_throttle_adds_its_delay() {
    run(async {
        let (_manager, worker, mut session) = joined(1).await;
        session.start("a", &ticking(2_000, 5)).await;
        let (free, _) = paced(&mut session, signal(Clear, 0, FOR_EVER_MS)).await;
        set(&mut session, &worker, signal(Throttle, 200, FOR_EVER_MS)).await;
        let (slow, time) = paced(&mut session, signal(Throttle, 200, FOR_EVER_MS)).await;
        assert!(slow.len() <= most(time, 200), "{} in {time:?}", slow.len());
        assert!(slow.len() >= 2, "it only slows down");
        assert!(free.len() > 2 * slow.len(), "{} and {}", free.len(), slow.len());
        assert!(free.iter().all(|arrived| !arrived.batch.merged), "one update each");
        assert!(worker.link().counts.delayed > 0);
    });
}

#[test]
fn ad37_batch_merges_and_sends_less_often() {
    run(async {
        let (_manager, worker, mut session) = joined(8).await;
        for task in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            session.start(task, &ticking(2_000, 5)).await;
        }
        set(&mut session, &worker, signal(Throttle, 100, FOR_EVER_MS)).await;
        let (throttled, _) = paced(&mut session, signal(Throttle, 100, FOR_EVER_MS)).await;
        set(&mut session, &worker, signal(Batch, 400, FOR_EVER_MS)).await;
        // What was queued before the signal.
        session.updates_for(Duration::from_millis(100), signal(Batch, 400, FOR_EVER_MS)).await;
        let (batched, time) = paced(&mut session, signal(Batch, 400, FOR_EVER_MS)).await;
        assert!(batched.len() <= most(time, 400), "{} in {time:?}", batched.len());
        assert!(batched.len() < throttled.len(), "{} and {}", batched.len(), throttled.len());
        assert!(batched.iter().all(|arrived| arrived.batch.merged), "the manager may accept them");
        let last = &batched.last().unwrap().batch;
        assert_eq!(last.updates.len(), 8, "one update has all changes of its execution");
        assert!(worker.link().counts.merged > 0);
    });
}

/// A worker that sent nothing at REJECT would never hear of a lower level.
#[test]
fn ad37_reject_sends_one_merged_probe_an_interval_and_counts_what_it_drops() {
    run(async {
        let (_manager, worker, mut session) = joined(4).await;
        for task in ["a", "b", "c", "d"] {
            session.start(task, &ticking(2_000, 5)).await;
        }
        set(&mut session, &worker, signal(Reject, 300, FOR_EVER_MS)).await;
        session.updates_for(Duration::from_millis(100), signal(Reject, 300, FOR_EVER_MS)).await;
        let dropped = || worker.link().counts.dropped;
        let before = dropped()[MessageClass::Data.index()];
        let (probes, time) = paced(&mut session, signal(Reject, 300, FOR_EVER_MS)).await;
        assert!((1..=most(time, 300)).contains(&probes.len()), "{} in {time:?}", probes.len());
        assert!(probes.iter().all(|probe| probe.batch.merged));
        let after = dropped();
        assert!(after[MessageClass::Data.index()] > before, "{after:?}");
        assert_eq!((after[0], after[1]), (0, 0), "neither control nor dispatch");
        // Level 0 clears: the newest value of each is there at once, nothing is lost.
        set(&mut session, &worker, signal(Clear, 0, 0)).await;
        let newest = counter(&probes.last().unwrap().batch, "a", "n");
        let next = timeout(AT_ONCE, session.updates()).await.expect("at once").batch;
        assert!(counter(&next, "a", "n") > newest, "{newest:?}");
    });
}

#[test]
fn ad37_telemetry_is_sent_without_backpressure_and_dropped_first_at_reject() {
    run(async {
        let (_manager, worker, mut session) = joined(1).await;
        while session.debugs == 0 {
            session.updates_for(Duration::from_millis(100), signal(Clear, 0, 0)).await;
        }
        let rejecting = signal(Reject, 100, FOR_EVER_MS);
        set(&mut session, &worker, rejecting).await;
        session.updates_for(Duration::from_millis(300), rejecting).await;
        let (debugs, stats) = (session.debugs, session.stats.len());
        let telemetry = MessageClass::Telemetry.index();
        while worker.link().counts.dropped[telemetry] == 0 {
            session.updates_for(Duration::from_millis(100), rejecting).await;
        }
        assert_eq!(session.debugs, debugs, "none at REJECT");
        assert!(session.stats.len() > stats, "statistics are data: merged, not dropped");
        assert_eq!(session.stats.last().unwrap().flush_state, "REJECT");
    });
}

#[test]
fn ad37_a_delay_falls_as_well_as_it_rises() {
    run(async {
        let (_manager, worker, mut session) = joined(1).await;
        session.start("a", &ticking(3_000, 5)).await;
        let mut counts = Vec::new();
        for delay_ms in [20, 400, 20] {
            let given = signal(Throttle, delay_ms, FOR_EVER_MS);
            set(&mut session, &worker, given).await;
            let (batches, time) = paced(&mut session, given).await;
            assert!(batches.len() <= most(time, delay_ms), "{} at {delay_ms}", batches.len());
            counts.push(batches.len());
        }
        assert!(counts[0] > 2 * counts[1] && counts[2] > 2 * counts[1], "{counts:?}");
    });
}

#[test]
fn ad37_a_silent_managers_signal_expires() {
    run(async {
        let (_manager, worker, mut session) = joined(1).await;
        session.start("a", &ticking(3_000, 5)).await;
        let first = session.updates().await;
        let began = Instant::now();
        session.ack(first.batch.seq, signal(Reject, FOR_EVER_MS, 400)).await;
        let next = timeout(AT_ONCE, session.updates()).await.expect("a minute early");
        assert!(next.at - began >= Duration::from_millis(300), "{:?}", next.at - began);
        assert_eq!(worker.link().level, Clear);
    });
}

#[test]
fn ad37_a_manager_that_is_gone_does_not_count_in_the_maximum() {
    run(async {
        let (mut manager, worker, mut session) = joined(1).await;
        session.start("a", &ticking(3_000, 5)).await;
        set(&mut session, &worker, signal(Reject, FOR_EVER_MS, 600_000)).await;
        drop(session);
        let mut session = timeout(AT_ONCE, manager.session()).await.expect("it dials again");
        assert_eq!(worker.link().level, Clear);
        session.renew("a", 0).await;
        timeout(AT_ONCE, session.updates()).await.expect("at once");
    });
}

#[test]
fn ad37_control_dispatch_and_ends_are_at_once_at_every_level_and_ends_come_once() {
    run(async {
        let (_manager, worker, mut session) = joined(8).await;
        session.start("data", &ticking(5_000, 5)).await;
        for level in BackpressureLevel::ALL {
            let given = signal(level, FOR_EVER_MS, FOR_EVER_MS);
            set(&mut session, &worker, given).await;
            let (ends, hangs) = (format!("ends-{level}"), format!("hangs-{level}"));
            let began = Instant::now();
            let code = "progress {\"counters\": {\"n\": 7}}\nprint x";
            assert!(matches!(session.execute(&ends, code).await, AnswerResult::Started { .. }));
            let is_end = |batch: &_| has_end(batch, &ends);
            let end = timeout(AT_ONCE, session.updates_until(given, is_end)).await.expect("an end");
            assert_eq!(counter(&end.batch, &ends, "n"), Some(7), "with all its progress");
            session.start(&hangs, "hang").await;
            assert_eq!(session.cancel(&hangs).await, AnswerResult::Cancelled);
            let is_end = |batch: &_| has_end(batch, &hangs);
            timeout(AT_ONCE, session.updates_until(given, is_end)).await.expect("an end");
            assert!(began.elapsed() < AT_ONCE, "{level}: {:?}", began.elapsed());
            session.ack_ends(0, given, &[&ends, &hangs]).await;
            let again = session.updates_for(Duration::from_millis(100), given).await;
            let is_again = |arrived: &Arrived| {
                has_end(&arrived.batch, &ends) || has_end(&arrived.batch, &hangs)
            };
            assert!(!again.iter().any(is_again), "{level}: an end came twice");
        }
        timeout(AT_ONCE, until(|| worker.link().followed == 1))
            .await
            .expect("the ends are forgotten");
    });
}

#[test]
fn ad37_a_changed_level_takes_effect_within_one_flush_and_a_round_trip() {
    run(async {
        let (_manager, _worker, mut session) = joined(1).await;
        session.start("a", &ticking(5_000, 5)).await;
        let free = signal(Clear, 0, 0);
        session.updates_for(Duration::from_millis(200), free).await;
        for level in [Throttle, Batch, Reject] {
            let held = signal(level, FOR_EVER_MS, FOR_EVER_MS);
            let last = session.updates().await;
            session.ack(last.batch.seq, held).await;
            let late = session.updates_for(Duration::from_millis(400), held).await;
            // One that was on its way when the signal came.
            assert!(late.len() <= 1, "{level}: {} batches after the signal", late.len());
            session.ack(0, free).await;
            let next = timeout(AT_ONCE, session.updates()).await.expect("not after a minute");
            session.ack(next.batch.seq, free).await;
        }
    });
}

#[test]
fn ad37_merges_at_every_level_lose_no_count() {
    run(async {
        let (_manager, _worker, mut session) = joined(8).await;
        for level in BackpressureLevel::ALL {
            let given = signal(level, 150, FOR_EVER_MS);
            session.ack(0, given).await;
            let tasks: Vec<_> = (0..8).map(|nth| format!("{level}-{nth}")).collect();
            for task in &tasks {
                session.start(task, &ticking(100, 2)).await;
            }
            let (mut ended, mut highest) = (0, [0; 8]);
            while ended < tasks.len() {
                let batch = session.updates().await.batch;
                session.ack(batch.seq, given).await;
                for (nth, task) in tasks.iter().enumerate() {
                    let now = counter(&batch, task, "n").unwrap_or(highest[nth]);
                    assert!(now >= highest[nth], "{task} fell from {} to {now}", highest[nth]);
                    highest[nth] = now;
                    ended += usize::from(has_end(&batch, task));
                }
            }
            assert_eq!(highest, [100; 8], "{level}");
            let ended: Vec<_> = tasks.iter().map(String::as_str).collect();
            session.ack_ends(0, given, &ended).await;
        }
    });
}

/// The manager's attempt may have begun anew, without what an earlier one had acknowledged.
#[test]
fn output_is_sent_again_from_where_the_manager_asks() {
    run(async {
        let (_manager, _worker, mut session) = joined(1).await;
        let free = signal(Clear, 0, 0);
        session.start("a", "print hello\nhang").await;
        let has_output = |batch: &tidegate_server::tasks::session::UpdateBatch| {
            batch.updates.iter().any(|update| update.after == 0 && update.view.next == 6)
        };
        session.updates_until(free, has_output).await;
        sleep(Duration::from_millis(50)).await;
        session.renew("a", 0).await;
        timeout(AT_ONCE, session.updates_until(free, has_output)).await.expect("again");
    });
}
