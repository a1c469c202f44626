//! AD-32, part 6, client side, 1 … 3.

use super::support::{Behaviour, Wire, at, config, manager, small, until};
use std::time::Duration;
use tidegate::MessageClass::{Data, Dispatch};
use tidegate::outbox::{DestinationSlow, EnqueueReason, OutgoingConfig, QueueState};
use tidegate::signal::BackpressureLevel;

#[tokio::test(start_paused = true)]
async fn ad32_client_unit_1_per_destination_queue_isolation() {
    let (manager, _hand_back) = manager(Wire::new(), config());
    let (asia, europe) = (at(1), at(2));
    manager.transport().set(asia, Behaviour::Stall);
    let mut dropped = 0;
    for number in 0..1000 {
        let to_asia = manager.enqueue(&asia, Data, number).expect("data makes room for itself");
        dropped += u64::from(to_asia.dropped.is_some());
        let to_europe = manager.enqueue(&europe, Data, number).expect("it is fast");
        assert_eq!((to_europe.state, to_europe.dropped), (QueueState::Healthy, None));
        until("Europe has it", || manager.transport().delivered(europe).len() as u64 > number)
            .await;
    }
    let (slow, fast) = (manager.stats_of(&asia).unwrap(), manager.stats_of(&europe).unwrap());
    assert_eq!((slow.queue.state, fast.queue.state), (QueueState::Saturated, QueueState::Healthy));
    assert_eq!(slow.queue.total_dropped, dropped);
    // One is being sent, 600 wait, and all others made room.
    assert_eq!((slow.sender.in_flight, dropped), (1, 1000 - 601));
    assert_eq!((fast.queue.total_dropped, fast.sender.total_sent), (0, 1000));
    assert_eq!(manager.transport().delivered(europe), (0..1000).collect::<Vec<_>>());
    assert!(manager.transport().delivered(asia).is_empty());
}

#[tokio::test(start_paused = true)]
async fn ad32_client_unit_2_lru_eviction_when_max_destinations_is_reached() {
    let (manager, _hand_back) =
        manager(Wire::new(), OutgoingConfig { max_destinations: 3, ..config() });
    let destinations = || {
        let ports: Vec<_> = manager.stats().iter().map(|stats| stats.destination_port).collect();
        ports
    };
    for number in [1, 2, 3, 1] {
        manager.send(&at(number), Data, 0).await.expect("it answers");
    }
    manager.send(&at(4), Data, 0).await.expect("an idle one makes room");
    assert_eq!(destinations(), [1, 3, 4], "2 was used least recently");
    assert_eq!(manager.transport().forgotten(), [at(2)]);

    // 3 is the next in turn, but it is busy.
    manager.transport().set(at(3), Behaviour::Stall);
    let _ = manager.enqueue(&at(3), Data, 30).unwrap();
    for number in [1, 4] {
        manager.send(&at(number), Data, 0).await.expect("it answers");
    }
    manager.send(&at(5), Data, 0).await.expect("an idle one makes room");
    assert_eq!(destinations(), [3, 4, 5]);
    assert_eq!(manager.totals().evicted, 2);

    // Whoever comes back starts anew.
    manager.send(&at(1), Data, 0).await.expect("it answers");
    assert_eq!(manager.stats_of(&at(1)).unwrap().sender.total_sent, 1);
    manager.transport().set(at(3), Behaviour::Answer);
    until("3 has its message", || manager.transport().delivered(at(3)).contains(&30)).await;
}

#[tokio::test(start_paused = true)]
async fn ad32_client_unit_2_a_new_destination_is_refused_when_none_is_empty_and_idle() {
    let (manager, _hand_back) =
        manager(Wire::new(), OutgoingConfig { max_destinations: 2, ..config() });
    for number in [1, 2] {
        manager.transport().set(at(number), Behaviour::Stall);
        let _ = manager.enqueue(&at(number), Data, u64::from(number)).unwrap();
    }
    until("both are being sent", || manager.transport().sends().len() == 2).await;
    let refused = manager.enqueue(&at(3), Dispatch, 3).expect_err("both are busy");
    assert_eq!(refused.message, 3);
    assert_eq!(refused.reason, EnqueueReason::TooManyDestinations { max: 2 });
    assert!(refused.to_string().contains("raise max_destinations"), "{refused}");
    let error = manager.send(&at(3), Dispatch, 3).await.expect_err("both are busy");
    assert_eq!((error.message, error.attempts, error.maybe_delivered), (3, 0, false));
    assert_eq!(manager.totals().destinations_refused, 2);

    for number in [1, 2] {
        manager.transport().set(at(number), Behaviour::Answer);
        until("it was delivered", || !manager.transport().delivered(at(number)).is_empty()).await;
    }
    until("it is idle", || manager.stats().iter().all(|stats| stats.sender.in_flight == 0)).await;
    manager.send(&at(3), Dispatch, 3).await.expect("now one can go");
}

#[tokio::test(start_paused = true)]
async fn ad32_client_unit_3_backpressure_signals_propagate() {
    let (manager, _hand_back) = manager(Wire::new(), config());
    manager.transport().set(at(1), Behaviour::Stall);
    let _ = manager.enqueue(&at(1), Data, 0).unwrap();
    until("it is being sent", || manager.stats()[0].sender.in_flight == 1).await;

    let mut told = Vec::new();
    for number in 1..=600 {
        let put = manager.enqueue(&at(1), Data, number).expect("there is room");
        told.push((put.state, put.level, put.delay.as_millis()));
        let stats = manager.stats_of(&at(1)).unwrap();
        assert_eq!((stats.queue.state, stats.queue.backpressure_level), (put.state, put.level));
        assert_eq!(DestinationSlow::of(&stats).is_some(), put.state >= QueueState::Overflow);
    }
    let mut changes: Vec<_> = told.iter().enumerate().collect();
    changes.dedup_by_key(|(_, told)| **told);
    let changes: Vec<_> = changes.into_iter().map(|(at, told)| (at + 1, *told)).collect();
    assert_eq!(
        changes,
        [
            (1, (QueueState::Healthy, BackpressureLevel::None, 0)),
            (350, (QueueState::Throttled, BackpressureLevel::Throttle, 50)),
            (425, (QueueState::Batching, BackpressureLevel::Batch, 200)),
            (475, (QueueState::Overflow, BackpressureLevel::Batch, 100)),
            (600, (QueueState::Saturated, BackpressureLevel::Reject, 500)),
        ]
    );
    let refused = manager.enqueue(&at(1), Dispatch, 601).expect_err("dispatch pushes nothing out");
    assert_eq!((refused.state, refused.delay.as_millis()), (QueueState::Saturated, 500));

    // Every state that tightens loosens: the destination takes one a millisecond again.
    manager.transport().set(at(1), Behaviour::After(Duration::from_millis(1)));
    let mut states = Vec::new();
    until("all is sent", || {
        let stats = manager.stats_of(&at(1)).unwrap();
        states.push(stats.queue.state);
        stats.sender.total_sent == 601
    })
    .await;
    states.dedup();
    let falling: Vec<_> = QueueState::ALL.into_iter().rev().collect();
    assert_eq!(states, falling, "through each state, with no way back up");
    let put = manager.enqueue(&at(1), Data, 602).unwrap();
    assert_eq!((put.level, put.delay), (BackpressureLevel::None, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn ad32_client_unit_3_a_caller_that_waits_is_told_when_a_newer_message_takes_its_place() {
    let (manager, mut hand_back) = manager(Wire::new(), small(1, 1));
    manager.transport().set(at(1), Behaviour::Stall);
    let _ = manager.enqueue(&at(1), Data, 0).unwrap();
    until("it is being sent", || manager.stats()[0].sender.in_flight == 1).await;
    let destination = at(1);
    let waiting = manager.send(&destination, Data, 1);
    let newer = async {
        assert_eq!(manager.enqueue(&at(1), Data, 2).unwrap().dropped, None);
        assert_eq!(manager.enqueue(&at(1), Data, 3).unwrap().dropped, None, "1 has a caller");
        assert_eq!(manager.enqueue(&at(1), Data, 4).unwrap().dropped, Some(2), "2 has none");
    };
    let (error, ()) = tokio::join!(biased; waiting, newer);
    let error = error.expect_err("1 was pushed out");
    assert_eq!((error.message, error.attempts, error.maybe_delivered), (1, 0, false));
    assert_eq!(
        error.to_string(),
        "not delivered after 0 attempts: newer messages took its place in a full queue"
    );
    assert!(hand_back.try_recv().is_none(), "everyone was told directly");
}
