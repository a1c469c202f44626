//! Callers that leave, destinations that go, and managers that end: nothing else is lost, nothing is sent twice.

use super::support::{Behaviour, Wire, at, config, manager, until};
use std::time::Duration;
use tidegate::MessageClass::{Data, Dispatch};
use tidegate::outbox::{
    EnqueueReason, Failure, OutgoingConfig, OutgoingConfigError, OutgoingRequestManager,
    QueueConfig, SendFailure,
};
use tokio::time::timeout;

const SOON: Duration = Duration::from_millis(10);

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_withdraws_its_message_and_no_other() {
    let (manager, mut hand_back) = manager(Wire::new(), config());
    manager.transport().set(at(1), Behaviour::Stall);
    let _ = manager.enqueue(&at(1), Data, 0).unwrap();
    until("it is being sent", || manager.stats()[0].sender.in_flight == 1).await;
    let _ = manager.enqueue(&at(1), Data, 1).unwrap();
    assert!(timeout(SOON, manager.send(&at(1), Data, 2)).await.is_err(), "it stops waiting");
    let _ = manager.enqueue(&at(1), Data, 3).unwrap();
    manager.transport().set(at(1), Behaviour::Answer);
    manager.send(&at(1), Data, 4).await.expect("it answers again");
    assert_eq!(manager.transport().delivered(at(1)), [0, 1, 3, 4]);
    let sender = manager.stats()[0].sender;
    assert_eq!((sender.total_sent, sender.total_withdrawn, sender.total_failed), (4, 1, 0));
    assert!(hand_back.try_recv().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_during_the_send_disturbs_nothing() {
    let (manager, mut hand_back) = manager(Wire::new(), config());
    manager.transport().set(at(1), Behaviour::Stall);
    assert!(timeout(SOON, manager.send(&at(1), Data, 0)).await.is_err());
    manager.transport().set(at(1), Behaviour::Answer);
    manager.send(&at(1), Data, 1).await.expect("it answers again");
    assert_eq!(manager.transport().delivered(at(1)), [0, 1], "each once");

    manager.transport().set(at(1), Behaviour::Stall);
    assert!(timeout(SOON, manager.send(&at(1), Data, 2)).await.is_err());
    manager.transport().set(at(1), Behaviour::Fail(Failure::Lost));
    let failed = hand_back.recv().await.expect("nobody else wants it");
    assert_eq!((failed.error.message, failed.error.maybe_delivered), (2, true));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_queued_by_a_future_that_was_never_polled() {
    let (manager, _hand_back) = manager(Wire::new(), config());
    let destination = at(1);
    drop(manager.send(&destination, Data, 0));
    assert_eq!(manager.totals().destinations, 0);
}

#[tokio::test(start_paused = true)]
async fn shutdown_sends_what_is_queued_and_takes_nothing_new() {
    let (manager, _hand_back) = manager(Wire::new(), config());
    manager.transport().set(at(1), Behaviour::After(Duration::from_millis(1)));
    for number in 0..100 {
        let _ = manager.enqueue(&at(1), Data, number).unwrap();
        let _ = manager.enqueue(&at(2), Data, number).unwrap();
    }
    assert!(manager.shutdown(Duration::from_secs(10)).await.is_empty());
    for number in [1, 2] {
        assert_eq!(manager.transport().delivered(at(number)), (0..100).collect::<Vec<_>>());
    }
    for destination in [at(1), at(9)] {
        let error = manager.enqueue(&destination, Data, 7).expect_err("it is closed");
        assert_eq!((error.message, error.reason), (7, EnqueueReason::Closed));
    }
    assert!(manager.shutdown(Duration::ZERO).await.is_empty(), "it can be called again");
}

#[tokio::test(start_paused = true)]
async fn shutdown_returns_what_it_could_not_send_in_time() {
    let (manager, mut hand_back) = manager(Wire::batching(2), config());
    manager.transport().set(at(1), Behaviour::Stall);
    let _ = manager.enqueue(&at(1), Data, 0).unwrap();
    until("it is being sent", || manager.stats()[0].sender.in_flight == 1).await;
    let _ = manager.enqueue(&at(1), Dispatch, 1).unwrap();
    let _ = manager.enqueue(&at(1), Data, 2).unwrap();
    let destination = at(1);
    let waiting = manager.send(&destination, Data, 3);
    let shutdown = manager.shutdown(Duration::from_secs(1));
    let (answer, unsent) = tokio::join!(biased; waiting, shutdown);
    let error = answer.expect_err("it is too late");
    assert!(matches!(error.cause, SendFailure::Closed), "{error:?}");
    assert_eq!((error.message, error.maybe_delivered), (3, false));
    let unsent: Vec<_> = unsent
        .into_iter()
        .map(|failed| (failed.error.message, failed.class, failed.error.maybe_delivered))
        .collect();
    assert_eq!(unsent, [(0, Data, true), (1, Dispatch, false), (2, Data, false)]);
    assert!(hand_back.try_recv().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_manager_that_is_dropped_ends_its_senders_and_hands_everything_back() {
    let (manager, mut hand_back) = manager(Wire::new(), config());
    for destination in [at(1), at(2)] {
        manager.transport().set(destination, Behaviour::Stall);
        for number in 0..3 {
            let _ = manager.enqueue(&destination, Data, number).unwrap();
        }
    }
    until("both are being sent", || manager.transport().sends().len() == 2).await;
    drop(manager);
    let mut back = Vec::new();
    // It ends with the last sender: that it ends at all shows that they do.
    while let Some(failed) = hand_back.recv().await {
        back.push((failed.destination.port(), failed.error.message, failed.error.maybe_delivered));
    }
    back.sort();
    let expected = [1, 2].map(|port| [(port, 0, true), (port, 1, false), (port, 2, false)]);
    assert_eq!(back, expected.concat());
}

#[test]
fn a_runtime_that_ends_takes_nothing_with_it() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    };
    let first = runtime();
    let (manager, mut hand_back) = first.block_on(async {
        let (manager, hand_back) = manager(Wire::new(), config());
        manager.transport().set(at(1), Behaviour::Stall);
        for number in 0..3 {
            let _ = manager.enqueue(&at(1), Data, number).unwrap();
        }
        until("it is being sent", || manager.stats()[0].sender.in_flight == 1).await;
        (manager, hand_back)
    });
    drop(first);
    let back: Vec<_> =
        std::iter::from_fn(|| hand_back.try_recv()).map(|failed| failed.error.message).collect();
    assert_eq!(back, [0, 1, 2]);
    for destination in [at(1), at(2)] {
        let error = manager.enqueue(&destination, Data, 9).expect_err("nobody would send it");
        assert_eq!((error.message, error.reason), (9, EnqueueReason::Closed));
    }
}

#[test]
fn a_manager_needs_a_runtime_and_a_valid_configuration() {
    let made = OutgoingRequestManager::new(Wire::new(), config());
    assert_eq!(made.err(), Some(OutgoingConfigError::NoRuntime));
    let wrong = [
        OutgoingConfig { max_destinations: 0, ..config() },
        OutgoingConfig { attempts_max: 0, ..config() },
        OutgoingConfig { attempt_timeout: Duration::ZERO, ..config() },
        OutgoingConfig { message_timeout: Duration::ZERO, ..config() },
        OutgoingConfig { hand_back_size: 0, ..config() },
        OutgoingConfig {
            queue: QueueConfig { primary_size: 0, ..QueueConfig::default() },
            ..config()
        },
    ];
    for config in wrong {
        let error = OutgoingRequestManager::new(Wire::new(), config).expect_err("it is wrong");
        assert!(error.to_string().contains("set it to"), "{error}");
    }
}
