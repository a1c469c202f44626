//! Pacing a sender makes sense only where waiting makes a batch fuller. `docs/adr/0008` draws the conclusion.

use super::support::{Behaviour, Wire, at, config, manager, until};
use std::time::Duration;
use tidegate::MessageClass::{Control, Data};
use tidegate::outbox::{QueueConfig, QueueState, RobustQueue};
use tokio::time::Instant;

/// How a simulated sender waits.
#[derive(Clone, Copy)]
enum Pace {
    /// As long as the state says before each send, as AD-32 draws it.
    EachSend,
    /// Only until a batch is full, and not at all without batches: ours.
    UntilFull,
}

/// What a minute of the same traffic ends in.
#[derive(Debug)]
struct Minute {
    delivered: u64,
    dropped: u64,
    state: QueueState,
}

/// A destination that takes a send in 1 ms, half as much traffic as it could take one by one (500 a second),
/// and one burst of 450 messages at the start.
fn minute(pace: Pace, batch_max: usize) -> Minute {
    let config = QueueConfig::default();
    let mut queue = RobustQueue::new(config).expect("the defaults are valid");
    let (mut delivered, mut dropped, mut sends_next_ms) = (0, 0, 0);
    let mut batch = Vec::new();
    for now_ms in 0..60_000_u64 {
        let arrivals = if now_ms == 0 { 450 } else { (now_ms + 1) % 2 };
        for _ in 0..arrivals {
            let put = queue.put(Data, now_ms).expect("data makes room for itself");
            dropped += u64::from(put.dropped.is_some());
        }
        let full = queue.len() >= batch_max.min(config.primary_size);
        let sends = match pace {
            Pace::EachSend => now_ms >= sends_next_ms,
            Pace::UntilFull => now_ms >= sends_next_ms || batch_max == 1 || full,
        };
        if sends && queue.get_batch(batch_max, &mut batch) > 0 {
            delivered += batch.len() as u64;
            batch.clear();
            let delay_ms = config.delays.of(queue.state()).as_millis() as u64;
            sends_next_ms = now_ms + delay_ms.max(1);
        }
    }
    Minute { delivered, dropped, state: queue.state() }
}

#[test]
fn pacing_each_send_turns_slow_into_collapsed() {
    let paced = minute(Pace::EachSend, 1);
    let free = minute(Pace::UntilFull, 1);
    println!("one by one, paced:     {paced:?}\none by one, not paced: {free:?}");
    assert_eq!((free.state, free.dropped), (QueueState::Healthy, 0));
    // At half the load that the destination could take, hardly anything gets through, and it never recovers.
    assert!(paced.delivered * 20 < free.delivered);
    assert!(paced.dropped > free.delivered / 2);
    assert_eq!(paced.state, QueueState::Saturated, "a minute later it still is");
}

/// A batch alone does not save it: 16 messages each 50 ms are 320 a second, and 500 arrive.
#[test]
fn pacing_full_batches_latches_too() {
    let paced = minute(Pace::EachSend, 16);
    let until_full = minute(Pace::UntilFull, 16);
    println!("16 at a time, paced:      {paced:?}\n16 at a time, until full: {until_full:?}");
    assert!(paced.dropped > 0 && paced.state >= QueueState::Overflow);
    assert_eq!((until_full.state, until_full.dropped), (QueueState::Healthy, 0));
}

/// The same minute on the sender that ships, in virtual time.
#[tokio::test(start_paused = true)]
async fn a_sender_that_can_not_batch_is_not_paced_and_recovers_from_a_burst() {
    let (manager, _hand_back) = manager(Wire::new(), config());
    manager.transport().set(at(1), Behaviour::After(Duration::from_millis(1)));
    let mut states = Vec::new();
    for number in 0..450 {
        states.push(manager.enqueue(&at(1), Data, number).expect("there is room").state);
    }
    assert_eq!(states.last(), Some(&QueueState::Batching));
    for number in 450..5450 {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let put = manager.enqueue(&at(1), Data, number).expect("there is room");
        assert_eq!(put.dropped, None);
        states.push(put.state);
    }
    assert_eq!(states.last(), Some(&QueueState::Healthy));
    until("all is sent", || manager.transport().delivered(at(1)).len() == 5450).await;
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_batches_waits_for_a_fuller_batch_and_no_longer_than_its_state_says() {
    let (manager, _hand_back) = manager(Wire::batching(450), config());
    manager.transport().set(at(1), Behaviour::Stall);
    for number in 0..401 {
        let _ = manager.enqueue(&at(1), Data, number).expect("there is room");
        if number == 0 {
            until("it is being sent", || manager.stats()[0].sender.in_flight == 1).await;
        }
    }
    // Throttled, with 400 waiting: the next batch waits 50 ms for 50 more. Only 10 come.
    manager.transport().set(at(1), Behaviour::Answer);
    let start = Instant::now();
    for number in 401..411 {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let _ = manager.enqueue(&at(1), Data, number).expect("there is room");
    }
    until("it was sent", || manager.transport().delivered(at(1)).len() == 411).await;
    let sends = manager.transport().sends();
    assert_eq!(sends.len(), 2);
    let waited = sends[1].at - start;
    assert!((50..=52).contains(&waited.as_millis()), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_and_a_control_message_wait_for_nothing() {
    for (messages, class) in [(401..451, Data), (401..402, Control)] {
        let (manager, _hand_back) = manager(Wire::batching(450), config());
        manager.transport().set(at(1), Behaviour::Stall);
        for number in 0..401 {
            let _ = manager.enqueue(&at(1), Data, number).expect("there is room");
            if number == 0 {
                until("it is being sent", || manager.stats()[0].sender.in_flight == 1).await;
            }
        }
        manager.transport().set(at(1), Behaviour::Answer);
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(manager.transport().sends().len(), 1, "it waits");
        let start = Instant::now();
        for number in messages.clone() {
            let _ = manager.enqueue(&at(1), class, number).expect("there is room");
        }
        let count = messages.end as usize;
        until("it was sent", || manager.transport().delivered(at(1)).len() == count).await;
        let sends = manager.transport().sends();
        assert_eq!((sends.len(), sends[1].at), (2, start), "at once");
    }
}
