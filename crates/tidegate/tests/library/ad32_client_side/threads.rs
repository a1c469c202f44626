//! Many producers on real threads, more destinations than there may be, and callers that leave: every message is
//! answered, and none of them twice.

use super::support::{Behaviour, Wire, at, config, manager};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate::MessageClass::{Control, Data, Dispatch, Telemetry};
use tidegate::outbox::{EnqueueReason, Failure, OutgoingConfig, SendFailure};
use tokio::task::JoinSet;

const PRODUCERS: u64 = 8;
const EACH: u64 = 2_000;
/// More than `max_destinations`, so that queues come and go all the time.
const DESTINATIONS: u64 = 12;

#[derive(Default)]
struct Tally {
    delivered: AtomicU64,
    too_many: AtomicU64,
    failed: AtomicU64,
    left: AtomicU64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_message_is_answered_while_queues_come_and_go() {
    let config = OutgoingConfig { max_destinations: 5, ..config() };
    let (manager, _hand_back) = manager(Wire::batching(4), config);
    // One destination refuses what it gets, one takes a moment, the others answer at once.
    manager.transport().set(at(1), Behaviour::Fail(Failure::Final));
    manager.transport().set(at(2), Behaviour::After(Duration::from_micros(200)));
    let (manager, tally) = (Arc::new(manager), Arc::new(Tally::default()));
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        let (manager, tally) = (Arc::clone(&manager), Arc::clone(&tally));
        producers.spawn(async move {
            for number in 0..EACH {
                let message = producer * EACH + number;
                let destination = at((1 + (message * 7 + number / 3) % DESTINATIONS) as u16);
                let class = [Data, Telemetry, Dispatch, Control][(message % 4) as usize];
                let send = manager.send(&destination, class, message);
                // Some callers leave at once: their message may or may not be on its way then.
                let leaves = async {
                    if !message.is_multiple_of(16) {
                        tokio::time::sleep(Duration::from_secs(60)).await;
                    }
                };
                let answer = tokio::select! {
                    biased;
                    answer = send => Some(answer),
                    () = leaves => None,
                };
                let count = match answer {
                    Some(Ok(reply)) => {
                        assert_eq!(reply, message);
                        &tally.delivered
                    }
                    Some(Err(error)) => {
                        assert_eq!(error.message, message, "each gets its own back");
                        match error.cause {
                            SendFailure::NotTaken(EnqueueReason::TooManyDestinations {
                                ..
                            }) => {
                                tokio::task::yield_now().await;
                                &tally.too_many
                            }
                            SendFailure::Transport(_) => &tally.failed,
                            cause => panic!("{cause:?}"),
                        }
                    }
                    None => {
                        assert_eq!(message % 16, 0, "{message} was never answered");
                        &tally.left
                    }
                };
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    producers.join_all().await;
    assert!(manager.shutdown(Duration::from_secs(60)).await.is_empty());
    let [delivered, too_many, failed, left] =
        [&tally.delivered, &tally.too_many, &tally.failed, &tally.left]
            .map(|count| count.load(Ordering::Relaxed));
    let totals = manager.totals();
    println!("{delivered} delivered, {too_many} refused, {failed} failed, {left} left; {totals:?}");
    assert_eq!(delivered + too_many + failed + left, PRODUCERS * EACH);
    assert!(totals.evicted > 100 && failed > 0 && left > 0, "each of these was tried");

    let mut arrived: Vec<_> = (1..=DESTINATIONS)
        .flat_map(|number| manager.transport().delivered(at(number as u16)))
        .collect();
    let count = arrived.len();
    arrived.sort();
    arrived.dedup();
    assert_eq!(arrived.len(), count, "nothing was delivered twice");
    assert!(count as u64 >= delivered && count as u64 <= delivered + left);
}
