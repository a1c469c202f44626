//! What the sender does with what it takes: batches, deadlines, retries within a budget, and nothing swallowed.

use super::support::{Behaviour, Broken, Manager, Wire, at, config, manager, until};
use std::error::Error;
use std::time::Duration;
use tidegate::MessageClass::{Control, Data, Dispatch};
use tidegate::outbox::{BudgetLimits, Failure, OutgoingConfig, Safety, SendFailure};
use tokio::time::Instant;

/// Retries are not what these tests are about, so they are not short of them.
fn generous() -> OutgoingConfig {
    let budget = BudgetLimits { ratio: 10.0, floor_per_s: 1000.0, ..BudgetLimits::default() };
    OutgoingConfig { budget, ..config() }
}

/// Messages that wait while the first of them is being sent.
async fn stalled(manager: &Manager, messages: std::ops::Range<u64>) {
    manager.transport().set(at(1), Behaviour::Stall);
    let first = manager.transport().sends().len();
    let _ = manager.enqueue(&at(1), Data, messages.start).expect("there is room");
    until("it is being sent", || manager.transport().sends().len() > first).await;
    for number in messages.skip(1) {
        let _ = manager.enqueue(&at(1), Data, number).expect("there is room");
    }
}

async fn all_delivered(manager: &Manager, count: usize) -> Vec<u64> {
    until("all is delivered", || manager.transport().delivered(at(1)).len() >= count).await;
    manager.transport().delivered(at(1))
}

#[tokio::test(start_paused = true)]
async fn what_is_queued_goes_as_one_send_when_the_transport_can() {
    let (manager, _hand_back) = manager(Wire::batching(16), config());
    stalled(&manager, 0..40).await;
    manager.transport().set(at(1), Behaviour::Answer);
    assert_eq!(all_delivered(&manager, 40).await, (0..40).collect::<Vec<_>>());
    let sizes: Vec<_> =
        manager.transport().sends().iter().map(|sent| sent.messages.len()).collect();
    assert_eq!(sizes, [1, 16, 16, 7]);
}

#[tokio::test(start_paused = true)]
async fn control_overtakes_what_waits() {
    let (manager, _hand_back) = manager(Wire::new(), config());
    stalled(&manager, 0..5).await;
    let _ = manager.enqueue(&at(1), Control, 99).unwrap();
    manager.transport().set(at(1), Behaviour::Answer);
    assert_eq!(all_delivered(&manager, 6).await, [0, 99, 1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_send_goes_back_to_the_head_and_nothing_overtakes_it() {
    let (manager, mut hand_back) = manager(Wire::batching(4), generous());
    stalled(&manager, 0..20).await;
    manager.transport().set(at(1), Behaviour::FailTimes(3, Failure::Unreachable));
    assert_eq!(all_delivered(&manager, 20).await, (0..20).collect::<Vec<_>>());
    assert!(hand_back.try_recv().is_none());
    let stats = manager.stats_of(&at(1)).unwrap();
    assert_eq!((stats.sender.total_sent, stats.sender.total_failed), (20, 0));
    assert_eq!(stats.queue.total_enqueued, 20, "what came back does not count twice");
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_that_was_partly_delivered_only_the_rest_is_sent_again() {
    let (manager, _hand_back) = manager(Wire::batching(8), generous());
    stalled(&manager, 0..17).await;
    manager.transport().set(at(1), Behaviour::Partly(3, Failure::Refused));
    let delivered = all_delivered(&manager, 17).await;
    assert_eq!(delivered, (0..17).collect::<Vec<_>>(), "each once, and in order");
    let second = &manager.transport().sends()[2].messages;
    assert_eq!(second[..5], [4, 5, 6, 7, 8], "three of 1 … 8 were taken");
}

#[tokio::test(start_paused = true)]
async fn what_may_have_been_delivered_is_sent_again_only_where_that_is_harmless() {
    let (once, _hand_back) = manager(Wire::new(), generous());
    once.transport().set(at(1), Behaviour::FailTimes(1, Failure::Lost));
    let error = once.send(&at(1), Dispatch, 5).await.expect_err("the answer was lost");
    assert_eq!((error.message, error.attempts, error.maybe_delivered), (5, 1, true));
    assert!(error.source().is_some_and(|source| source.is::<Broken>()));

    let idempotent = OutgoingConfig { safety: Safety::Idempotent, ..generous() };
    let (again, _hand_back) = manager(Wire::new(), idempotent);
    again.transport().set(at(1), Behaviour::FailTimes(2, Failure::Lost));
    assert_eq!(again.send(&at(1), Dispatch, 5).await.expect("the third attempt succeeds"), 5);
    assert_eq!(again.transport().sends().len(), 3);
}

/// The doubt of one attempt outlives the next, which certainly delivered nothing.
#[tokio::test(start_paused = true)]
async fn what_may_have_been_delivered_once_stays_doubtful() {
    let config = OutgoingConfig { safety: Safety::Idempotent, attempts_max: 2, ..generous() };
    let (manager, _hand_back) = manager(Wire::new(), config);
    manager.transport().set(at(1), Behaviour::FailTimes(1, Failure::Lost));
    let destination = at(1);
    let send = manager.send(&destination, Dispatch, 5);
    let then = async {
        while manager.transport().sends().is_empty() {
            tokio::task::yield_now().await;
        }
        manager.transport().set(at(1), Behaviour::Fail(Failure::Unreachable));
    };
    let (answer, ()) = tokio::join!(biased; send, then);
    let error = answer.expect_err("nobody is there");
    assert!(matches!(error.cause, SendFailure::Transport(_)), "{error:?}");
    assert_eq!((error.message, error.attempts, error.maybe_delivered), (5, 2, true));
}

#[tokio::test(start_paused = true)]
async fn what_can_not_succeed_is_not_tried_again_and_holds_up_nobody() {
    let (manager, _hand_back) = manager(Wire::new(), generous());
    manager.transport().set(at(1), Behaviour::Fail(Failure::Unreachable));
    manager.send(&at(1), Dispatch, 4).await.expect_err("nobody is there");
    manager.transport().set(at(1), Behaviour::Fail(Failure::Final));
    manager.send(&at(1), Dispatch, 4).await.expect_err("now there is, and it is final");
    let start = Instant::now();
    let error = manager.send(&at(1), Dispatch, 5).await.expect_err("it is final");
    assert_eq!((error.message, error.attempts, error.maybe_delivered), (5, 1, false));
    manager.transport().set(at(1), Behaviour::Answer);
    manager.send(&at(1), Dispatch, 6).await.expect("the next is another matter");
    assert_eq!(start.elapsed(), Duration::ZERO, "the destination itself has not failed");
}

#[tokio::test(start_paused = true)]
async fn an_attempt_ends_at_its_deadline_and_gives_the_message_back() {
    let (manager, _hand_back) = manager(Wire::new(), generous());
    manager.transport().set(at(1), Behaviour::Stall);
    let start = Instant::now();
    let error = manager.send(&at(1), Dispatch, 5).await.expect_err("nobody answers");
    assert_eq!(start.elapsed(), OutgoingConfig::default().attempt_timeout);
    assert!(matches!(error.cause, SendFailure::TimedOut), "{error:?}");
    assert_eq!((error.message, error.attempts, error.maybe_delivered), (5, 1, true));
}

#[tokio::test(start_paused = true)]
async fn a_message_ends_at_its_deadline_although_it_was_never_sent() {
    let config = OutgoingConfig { message_timeout: Duration::from_secs(3), ..generous() };
    let (manager, mut hand_back) = manager(Wire::new(), config);
    stalled(&manager, 0..1).await;
    let start = Instant::now();
    let error = manager.send(&at(1), Data, 1).await.expect_err("its turn comes too late");
    assert!(matches!(error.cause, SendFailure::Expired), "{error:?}");
    assert_eq!((error.message, error.attempts, error.maybe_delivered), (1, 0, false));
    let latest = config.message_timeout + config.attempt_timeout + config.backoff_cap;
    assert!(start.elapsed() <= latest, "{:?}", start.elapsed());
    let first = hand_back.recv().await.expect("the one before it was given up too");
    assert!(matches!(first.error.cause, SendFailure::TimedOut), "{first:?}");
    assert_eq!((first.error.message, first.class, first.destination), (0, Data, at(1)));
}

#[tokio::test(start_paused = true)]
async fn attempts_have_a_bound_and_their_waits_are_spread_and_reproducible() {
    let waits = |seed| async move {
        let config = OutgoingConfig { seed: Some(seed), ..generous() };
        let (manager, _hand_back) = manager(Wire::new(), config);
        manager.transport().set(at(1), Behaviour::Fail(Failure::Unreachable));
        let error = manager.send(&at(1), Dispatch, 5).await.expect_err("nobody is there");
        assert_eq!((error.attempts, error.maybe_delivered), (config.attempts_max, false));
        let sends = manager.transport().sends();
        assert_eq!(sends.len(), config.attempts_max as usize);
        let waits: Vec<_> = sends.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        for (doublings, wait) in waits.iter().enumerate() {
            let longest = config.backoff_base * 2_u32.pow(doublings as u32);
            // The timer counts in whole milliseconds.
            assert!(*wait <= longest + Duration::from_millis(1), "{doublings}: {wait:?}");
        }
        waits
    };
    assert_eq!(waits(1).await, waits(1).await);
    assert_ne!(waits(1).await, waits(2).await);
}

/// However many messages meet a dead destination, the retries stay within the budget.
#[tokio::test(start_paused = true)]
async fn retries_stay_within_their_budget() {
    let budget = BudgetLimits { ratio: 0.2, floor_per_s: 0.0, window: Duration::from_secs(3600) };
    let config = OutgoingConfig { budget, message_timeout: Duration::from_secs(3600), ..config() };
    let (manager, mut hand_back) = manager(Wire::new(), config);
    manager.transport().set(at(1), Behaviour::Fail(Failure::Unreachable));
    for number in 0..400 {
        let _ = manager.enqueue(&at(1), Data, number).unwrap();
    }
    for number in 0..400 {
        let failed = hand_back.recv().await.expect("each comes back");
        assert_eq!(failed.error.message, number, "in order");
    }
    let sends = manager.transport().sends().len();
    assert!((440..=480).contains(&sends), "{sends} sends of 400 messages: at most a fifth more");
    assert_eq!(manager.stats()[0].sender.total_retried as usize, sends - 400);
}

#[tokio::test(start_paused = true)]
async fn a_transport_that_panics_ends_one_attempt_and_not_the_sender() {
    let (manager, _hand_back) = manager(Wire::new(), generous());
    manager.transport().set(at(1), Behaviour::Panic);
    let error = manager.send(&at(1), Dispatch, 5).await.expect_err("it panicked");
    assert!(matches!(error.cause, SendFailure::Panicked), "{error:?}");
    assert_eq!((error.message, error.maybe_delivered), (5, true));
    assert_eq!(manager.send(&at(1), Dispatch, 6).await.expect("the sender goes on"), 6);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_is_missing_is_said_to_be_missing() {
    let (manager, _hand_back) = manager(Wire::new(), generous());
    manager.transport().set(at(1), Behaviour::Forget);
    let error = manager.send(&at(1), Dispatch, 5).await.expect_err("it has no reply");
    assert!(matches!(error.cause, SendFailure::NoReply), "{error:?}");
    assert_eq!((error.message, error.maybe_delivered), (5, true));
}

#[tokio::test(start_paused = true)]
async fn the_hand_back_is_bounded_and_what_it_could_not_hold_is_counted() {
    let config = OutgoingConfig { hand_back_size: 10, ..generous() };
    let (manager, mut hand_back) = manager(Wire::new(), config);
    manager.transport().set(at(1), Behaviour::Fail(Failure::Final));
    for number in 0..25 {
        let _ = manager.enqueue(&at(1), Data, number).unwrap();
    }
    until("all have failed", || manager.stats()[0].sender.total_failed == 25).await;
    let totals = manager.totals();
    assert_eq!((totals.handed_back, totals.hand_back_lost), (10, 15));
    let held = std::iter::from_fn(|| hand_back.try_recv()).count();
    assert_eq!(held, 10);
}

/// A destination that answers at once and is never out of messages still leaves its thread to others.
#[tokio::test]
async fn a_transport_that_is_always_ready_does_not_keep_its_thread() {
    let (manager, _hand_back) = manager(Wire::new(), config());
    for number in 0..600 {
        let _ = manager.enqueue(&at(1), Data, number).expect("there is room");
    }
    // The sender runs for the first time here; when this runs again, it has not sent everything.
    tokio::task::yield_now().await;
    let sent = manager.transport().delivered(at(1)).len();
    assert!((1..600).contains(&sent), "{sent} of 600");
}
