//! Time from a manager's signal to its effect at a worker, and ends that wait for no signal.

use super::bed::{run, ticking, worker};
use super::peer_manager::{PeerManager, PeerSession, has_end, signal};
use std::time::Duration;
use tidegate::signal::BackpressureLevel::{Batch, None as Clear, Reject, Throttle};
use tidegate::signal::BackpressureSignal;
use tokio::time::{Instant, sleep, timeout};

/// Longer than any test.
const FOR_EVER_MS: u32 = 60_000;
/// Time of an acknowledgement on its way. The worker queues more meanwhile.
const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Interval of the slow pace.
const SLOW_MS: u32 = 1_000;
/// Half of the slow pace: whatever comes earlier is at another pace, also on a busy machine.
const HALF: Duration = Duration::from_millis(500);

/// Receives updates for a number of batches, each acknowledged after a round trip.
async fn exchange(session: &mut PeerSession, batches: usize, given: BackpressureSignal) {
    for _ in 0..batches {
        let seq = session.updates().await.batch.seq;
        sleep(ROUND_TRIP).await;
        session.ack(seq, given).await;
    }
}

async fn start_all(session: &mut PeerSession) {
    for task in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        session.start(task, &ticking(5_000, 5)).await;
    }
}

/// The manager can signal only with the acknowledgement of the next batch, which comes within one interval of the
/// old pace. From there on no batch has the old pace.
#[test]
fn ad37_a_higher_level_takes_effect_within_one_interval_and_a_round_trip() {
    run(async {
        let mut manager = PeerManager::bind().await;
        let _worker = worker("w1", 8, manager.address());
        let mut session = manager.session().await;
        start_all(&mut session).await;
        for from in [signal(Clear, 0, 0), signal(Throttle, 50, FOR_EVER_MS)] {
            for level in [Throttle, Batch, Reject] {
                let slow = signal(level, SLOW_MS, FOR_EVER_MS);
                exchange(&mut session, 8, from).await;
                // Here the level changes at the manager.
                exchange(&mut session, 1, slow).await;
                let early = timeout(HALF, session.updates()).await;
                let early = early.map(|arrived| arrived.batch.updates.len());
                assert!(early.is_err(), "from {} to {level}: {early:?} updates", from.level);
                exchange(&mut session, 1, slow).await;
            }
        }
    });
}

#[test]
fn ad37_a_lower_level_takes_effect_within_one_interval_and_a_round_trip() {
    run(async {
        let mut manager = PeerManager::bind().await;
        let _worker = worker("w1", 8, manager.address());
        let mut session = manager.session().await;
        start_all(&mut session).await;
        for level in [Throttle, Batch, Reject] {
            let slow = signal(level, SLOW_MS, FOR_EVER_MS);
            exchange(&mut session, 3, slow).await;
            // Here the level changes at the manager.
            let seq = session.updates().await.batch.seq;
            sleep(ROUND_TRIP).await;
            session.ack(seq, signal(Clear, 0, 0)).await;
            let acked = Instant::now();
            let next = session.updates().await;
            assert!(next.at - acked < HALF, "from {level}: {:?}", next.at - acked);
            session.ack(next.batch.seq, signal(Clear, 0, 0)).await;
        }
    });
}

/// An end waited for the acknowledgement of the batch before it, for up to 10 s, and then for another connection.
#[test]
fn an_end_waits_for_no_acknowledgement_of_data() {
    run(async {
        for level in [Clear, Reject] {
            let mut manager = PeerManager::bind().await;
            let worker = worker("w1", 4, manager.address());
            let mut session = manager.session().await;
            session.start("a", &ticking(5_000, 5)).await;
            let first = session.updates().await.batch.seq;
            session.ack(first, signal(level, 300, FOR_EVER_MS)).await;
            // The next batch is never acknowledged.
            let unacked = session.updates().await.batch.seq;
            session.start("b", "print done").await;
            let began = Instant::now();
            let end = loop {
                let arrived = session.updates().await;
                if has_end(&arrived.batch, "b") {
                    break arrived;
                }
            };
            // A batch without an acknowledgement breaks the connection after 10 s.
            assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
            assert!(end.batch.seq > unacked, "on the same connection");
            session.ack_ends(end.batch.seq, signal(Clear, 0, 0), &["b"]).await;
            while worker.link().followed > 1 {
                sleep(Duration::from_millis(2)).await;
            }
        }
    });
}
