//! What AD-32's own outbox got wrong, each as a test of ours on the whole way from producer to destination.
//!
//! That of the queue alone is in `tidegate-core`, in `tests/outbox_failures.rs`.

use super::support::{Behaviour, Wire, at, config, manager, small, until};
use std::time::Duration;
use tidegate::MessageClass::{Control, Data, Dispatch, Telemetry};
use tidegate::outbox::{EnqueueReason, OutgoingConfig, QueueState, RefusedReason};
use tokio::time::Instant;

/// The origin's eviction deletes queues that hold messages and cancels the send that is under way.
#[tokio::test(start_paused = true)]
async fn eviction_never_takes_a_message_or_a_send_with_it() {
    let (manager, mut hand_back) =
        manager(Wire::new(), OutgoingConfig { max_destinations: 4, ..config() });
    for number in 1..=3 {
        manager.transport().set(at(number), Behaviour::Stall);
        for message in 0..10 {
            let _ = manager.enqueue(&at(number), Data, message).unwrap();
        }
    }
    // A thousand destinations come and go beside the three that are busy.
    for number in 100..1100 {
        manager.send(&at(number), Data, 0).await.expect("there is one place that comes free");
    }
    assert_eq!(manager.totals().evicted, 999);
    for number in 1..=3 {
        manager.transport().set(at(number), Behaviour::Answer);
        until("all is delivered", || manager.transport().delivered(at(number)).len() == 10).await;
        assert_eq!(manager.transport().delivered(at(number)), (0..10).collect::<Vec<_>>());
    }
    assert_eq!(manager.transport().sends().len(), 1000 + 30, "and nothing was sent twice");
    assert!(hand_back.try_recv().is_none());
}

/// The origin holds one semaphore over all destinations: as many stalled ones as it has places stop all others.
#[tokio::test(start_paused = true)]
async fn stalled_destinations_take_nothing_from_the_others() {
    let (manager, _hand_back) = manager(Wire::new(), config());
    for number in 1..=999 {
        manager.transport().set(at(number), Behaviour::Stall);
        let _ = manager.enqueue(&at(number), Data, 0).unwrap();
    }
    until("all are being sent", || manager.transport().sends().len() == 999).await;
    let start = Instant::now();
    for message in 0..100 {
        manager.send(&at(1000), Data, message).await.expect("it answers");
    }
    assert_eq!(start.elapsed(), Duration::ZERO, "in virtual time it waited for nobody");
}

/// The origin stores a priority and never reads it.
#[tokio::test(start_paused = true)]
async fn the_class_of_a_message_decides_at_the_bound() {
    let (manager, _hand_back) = manager(Wire::new(), small(2, 1));
    manager.transport().set(at(1), Behaviour::Stall);
    let _ = manager.enqueue(&at(1), Data, 0).unwrap();
    until("it is being sent", || manager.stats()[0].sender.in_flight == 1).await;
    for (class, number) in [(Dispatch, 1), (Telemetry, 2), (Data, 3)] {
        let _ = manager.enqueue(&at(1), class, number).unwrap();
    }
    assert_eq!(manager.enqueue(&at(1), Data, 4).unwrap().dropped, Some(2));
    for (class, reason) in
        [(Dispatch, RefusedReason::QueueFull), (Telemetry, RefusedReason::NothingToDrop)]
    {
        let error = manager.enqueue(&at(1), class, 5).expect_err("it may push nothing out");
        assert_eq!((error.message, error.reason), (5, EnqueueReason::Refused(reason)));
    }
    assert_eq!(manager.enqueue(&at(1), Control, 6).unwrap().dropped, None);
    manager.transport().set(at(1), Behaviour::Answer);
    until("all is delivered", || manager.transport().delivered(at(1)).len() == 5).await;
    assert_eq!(manager.transport().delivered(at(1)), [0, 6, 1, 3, 4]);
}

/// The origin says "accepted" when it is saturated, drops, and counts no drop.
#[tokio::test(start_paused = true)]
async fn every_message_is_accounted_for() {
    let (manager, mut hand_back) = manager(Wire::batching(8), small(40, 10));
    let (mut accepted, mut dropped, mut refused) = (0_u64, 0_u64, 0_u64);
    let classes = [Data, Telemetry, Dispatch, Telemetry, Data];
    for number in 0..5000_u64 {
        let behaviour = match number % 500 {
            0 => Behaviour::After(Duration::from_millis(8)),
            200 => Behaviour::FailTimes(3, tidegate::outbox::Failure::Unreachable),
            300 => Behaviour::Fail(tidegate::outbox::Failure::Lost),
            400 => Behaviour::Stall,
            _ => Behaviour::default(),
        };
        if behaviour != Behaviour::default() {
            manager.transport().set(at(1), behaviour);
        }
        match manager.enqueue(&at(1), classes[number as usize % classes.len()], number) {
            Ok(put) => {
                accepted += 1;
                dropped += u64::from(put.dropped.is_some());
            }
            Err(_) => refused += 1,
        }
        if number % 3 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    manager.transport().set(at(1), Behaviour::Answer);
    let unsent = manager.shutdown(Duration::from_secs(60)).await;
    assert!(unsent.is_empty());
    let stats = manager.stats_of(&at(1)).unwrap();
    let delivered = manager.transport().delivered(at(1));
    let back = std::iter::from_fn(|| hand_back.try_recv()).count() as u64;
    assert_eq!(accepted + refused, 5000);
    assert_eq!(accepted, delivered.len() as u64 + dropped + back, "nothing is lost");
    assert!(delivered.is_sorted_by(|a, b| a < b), "in order, and nothing twice");
    assert!(dropped > 0 && back > 0 && refused > 0, "each of these was tried");
    assert_eq!(stats.queue.total_enqueued, accepted);
    assert_eq!(stats.sender.total_sent, delivered.len() as u64);
    // What a put-back displaced was dropped by the queue and went to the hand-back.
    assert_eq!(stats.queue.total_dropped + stats.sender.total_failed, dropped + back);
    assert_eq!(stats.queue.state, QueueState::Healthy);
}

/// Of linkerd it is said that it loops in failfast under load. Here a destination that fails is tried at a bounded
/// rate, its messages wait, and it is used again as soon as it answers.
#[tokio::test(start_paused = true)]
async fn a_destination_that_fails_is_tried_at_a_bounded_rate_and_used_again_when_it_answers() {
    let (manager, _hand_back) = manager(Wire::new(), config());
    manager.transport().set(at(1), Behaviour::Fail(tidegate::outbox::Failure::Unreachable));
    for number in 0..600 {
        let _ = manager.enqueue(&at(1), Data, number).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    let sends = manager.transport().sends().len();
    assert!((5..60).contains(&sends), "{sends} attempts in 30 s, with 600 messages waiting");
    let waiting = manager.stats_of(&at(1)).unwrap().queue;
    assert!(waiting.primary_size + waiting.overflow_size > 500, "they wait: {waiting:?}");
    manager.transport().set(at(1), Behaviour::Answer);
    let start = Instant::now();
    until("it is empty", || manager.stats()[0].queue.primary_size == 0).await;
    assert!(start.elapsed() <= config().backoff_cap, "one backoff later all is sent");
}
