//! The windowed channel as tasks use it: cancelled, closed from both ends, leased, and by many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegate::channel::{
    Closed, Load, Single, SlotError, TryRecvError, TrySendError, Weigh, Weight, Window,
    WindowedReceiver, WindowedSender, windowed,
};
use tokio::task::yield_now;
use tokio::time::timeout;

/// Longer than anything here takes; only ever waited for when something is wrong.
const LONG: Duration = Duration::from_secs(20);

/// A message of its own length.
#[derive(Debug, PartialEq, Eq)]
struct Text(&'static str);

/// Counts how many of it there are.
struct Counted(Arc<AtomicUsize>);

impl Weigh for Text {
    fn weight(&self) -> Weight {
        Weight::one(self.0.len() as u32)
    }
}

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Weigh for Counted {
    fn weight(&self) -> Weight {
        Weight::one(0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn singles(items: u32) -> (WindowedSender<Single<u32>>, WindowedReceiver<Single<u32>>) {
    windowed(Window::of_items(items))
}

/// A channel of one place, taken.
fn full() -> (WindowedSender<Single<u32>>, WindowedReceiver<Single<u32>>) {
    let channel = singles(1);
    assert!(channel.0.try_send(Single(0)).is_ok());
    channel
}

/// Polls a future once and drops it, as `select!` does with the branches that lose.
async fn cancel<F: Future>(future: F) {
    tokio::select! {
        biased;
        _ = future => panic!("it must wait"),
        () = std::future::ready(()) => {}
    }
}

#[tokio::test]
async fn a_cancelled_send_has_sent_nothing_and_holds_nothing() {
    let (sender, mut receiver) = full();
    cancel(sender.send(Single(1))).await;
    let snapshot = sender.gauge().snapshot();
    assert_eq!((snapshot.senders_waiting, snapshot.waits_total), (0, 1));
    assert_eq!(receiver.recv().await, Some(Single(0)));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(sender.gauge().snapshot().balance.items, 1);
}

#[tokio::test]
async fn a_message_sent_by_reference_survives_every_cancellation() {
    let (sender, mut receiver) = full();
    let mut message = Some(Single(1));
    for _ in 0..3 {
        cancel(sender.send_ref(&mut message)).await;
        assert_eq!(message, Some(Single(1)));
    }
    assert_eq!(receiver.recv().await, Some(Single(0)));
    assert_eq!(sender.send_ref(&mut message).await, Ok(()));
    assert_eq!(message, None);
    assert_eq!(sender.send_ref(&mut message).await, Ok(()), "there is nothing to send");
    assert_eq!(receiver.recv().await, Some(Single(1)));
    receiver.close();
    message = Some(Single(2));
    assert_eq!(sender.send_ref(&mut message).await, Err(Closed));
    assert_eq!(message, Some(Single(2)));
}

/// Served, but cancelled before it ran again: what it was handed goes to the next.
#[tokio::test]
async fn one_that_is_cancelled_after_it_was_served_hands_on_what_it_got() {
    let (sender, mut receiver) = full();
    let mut first = Box::pin(sender.send(Single(1)));
    let mut second = Box::pin(sender.send(Single(2)));
    for send in [&mut first, &mut second] {
        assert!(futures_poll(send.as_mut()).is_pending());
    }
    assert_eq!(receiver.recv().await, Some(Single(0)));
    assert_eq!(sender.gauge().snapshot().reserved, Load { items: 1, bytes: 0 });
    drop(first);
    assert!(timeout(LONG, second).await.expect("it has its turn").is_ok());
    assert_eq!(receiver.recv().await, Some(Single(2)));
}

fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
    future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
}

#[tokio::test]
async fn receives_lose_nothing_in_a_select() {
    let (sender, mut receiver) = singles(4);
    let mut out = Vec::new();
    cancel(receiver.recv()).await;
    cancel(receiver.recv_many(&mut out, 8)).await;
    cancel(receiver.lease_many(&mut out, 8)).await;
    let producer = tokio::spawn(async move {
        for number in 0..20_000 {
            sender.send(Single(number)).await.expect("it is received");
            if number % 7 == 0 {
                yield_now().await;
            }
        }
    });
    let mut expected = 0;
    while expected < 20_000 {
        tokio::select! {
            message = receiver.recv() => {
                assert_eq!(message, Some(Single(expected)));
                expected += 1;
            }
            () = yield_now() => {}
        }
    }
    producer.await.expect("it does not panic");
    assert_eq!(receiver.recv().await, None);
}

#[tokio::test]
async fn a_cancelled_batch_keeps_what_was_not_sent() {
    let (sender, mut receiver) = singles(3);
    let mut batch: Vec<_> = (0..5).map(Single).collect();
    cancel(sender.send_batch(&mut batch)).await;
    assert_eq!(batch, [Single(3), Single(4)]);
    let mut received = Vec::new();
    assert_eq!(receiver.recv_many(&mut received, 2).await, 2);
    receiver.close();
    assert_eq!(sender.send_batch(&mut batch).await, Err(Closed));
    assert_eq!(batch, [Single(3), Single(4)]);
    assert_eq!(receiver.recv_many(&mut received, 9).await, 1);
    assert_eq!(received, [Single(0), Single(1), Single(2)]);
    assert_eq!(receiver.recv_many(&mut received, 9).await, 0);
}

#[tokio::test]
async fn a_batch_of_any_size_passes_a_small_window_in_order() {
    for (window, count) in [(1, 10), (7, 500), (100, 64), (100, 5_000), (10_000, 5_000)] {
        let (sender, mut receiver) = singles(window);
        let producer = tokio::spawn(async move {
            let mut batch: Vec<_> = (0..count).map(Single).collect();
            sender.send_batch(&mut batch).await.expect("it is received");
            assert!(batch.is_empty());
        });
        let mut received = Vec::new();
        while receiver.recv_many(&mut received, 33).await > 0 {}
        assert!(received.iter().map(|single| single.0).eq(0..count), "{window}, {count}");
        producer.await.expect("it does not panic");
    }
}

#[tokio::test]
async fn closing_gives_back_what_waits_and_keeps_what_was_sent() {
    let (sender, mut receiver) = full();
    let other = sender.clone();
    let waiting = tokio::spawn(async move { other.send(Single(1)).await });
    let other = sender.clone();
    let told = tokio::spawn(async move { other.closed().await });
    yield_now().await;
    assert!(!sender.is_closed() && !told.is_finished());
    receiver.close();
    let error = waiting.await.expect("it does not panic").expect_err("it was closed");
    assert_eq!(error.into_inner(), Single(1));
    timeout(LONG, told).await.expect("it is told").expect("it does not panic");
    assert!(sender.is_closed());
    assert_eq!(sender.try_send(Single(2)), Err(TrySendError::Closed(Single(2))));
    assert_eq!(receiver.recv().await, Some(Single(0)));
    assert_eq!(receiver.recv().await, None);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
}

#[tokio::test]
async fn a_slot_reserved_before_the_close_is_still_received() {
    let (sender, mut receiver) = singles(2);
    let slot = sender.reserve(Weight::one(0)).await.expect("it is open");
    let unused = sender.reserve(Weight::one(0)).await.expect("it is open");
    assert_eq!(sender.gauge().snapshot().reserved.items, 2);
    receiver.close();
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty), "two may still come");
    assert_eq!(slot.send(Single(1)), Ok(()));
    assert_eq!(receiver.recv().await, Some(Single(1)));
    cancel(receiver.recv()).await;
    drop(unused);
    assert_eq!(receiver.recv().await, None);
    assert!(sender.reserve(Weight::one(0)).await.is_err());
}

/// It sleeps until the last that may still come is given up.
#[tokio::test]
async fn a_closed_receiver_that_sleeps_is_woken_by_a_slot_that_is_dropped() {
    let (sender, mut receiver) = singles(1);
    let slot = sender.reserve(Weight::one(0)).await.expect("it is open");
    receiver.close();
    let end = tokio::spawn(async move { receiver.recv().await });
    yield_now().await;
    assert!(!end.is_finished());
    drop(slot);
    assert_eq!(timeout(LONG, end).await.expect("it is woken").expect("it does not panic"), None);
}

#[tokio::test]
async fn a_slot_takes_what_was_reserved_and_no_more() {
    let (sender, receiver) = windowed(Window { items: 4, bytes: 10 });
    let slot = sender.reserve(Weight::one(3)).await.expect("there is room");
    assert_eq!(slot.send(Text("long")), Err(SlotError::TooHeavy(Text("long"))));
    assert_eq!(sender.gauge().snapshot().balance.bytes, 10);
    let slot = sender.reserve(Weight { items: 3, bytes: 9 }).await.expect("there is room");
    assert_eq!(slot.send(Text("short")), Ok(()));
    let snapshot = sender.gauge().snapshot();
    assert_eq!((snapshot.balance.items, snapshot.balance.bytes), (3, 5));
    assert_eq!(snapshot.reserved, Load::default());
    let slot = sender.reserve(Weight::one(1)).await.expect("there is room");
    drop(receiver);
    assert_eq!(slot.send(Text("x")), Err(SlotError::Closed(Text("x"))));
    assert_eq!(sender.gauge().snapshot().in_flight(), Load::default());
}

#[tokio::test]
async fn the_receiver_ends_when_all_senders_are_gone_and_everything_is_received() {
    let (sender, mut receiver) = singles(4);
    let other = sender.clone();
    assert!(other.try_send(Single(1)).is_ok());
    drop(sender);
    assert!(other.try_send(Single(2)).is_ok());
    let ended = tokio::spawn(async move {
        let received = [receiver.recv().await, receiver.recv().await];
        (received, receiver.recv().await)
    });
    yield_now().await;
    assert!(!ended.is_finished());
    drop(other);
    let (received, end) = timeout(LONG, ended).await.expect("it ends").expect("it does not panic");
    assert_eq!((received, end), ([Some(Single(1)), Some(Single(2))], None));
}

#[tokio::test]
async fn a_receiver_that_goes_drops_what_is_queued_at_once() {
    let count = Arc::new(AtomicUsize::new(0));
    let (sender, mut receiver) = windowed(Window::of_items(4));
    let mut batch: Vec<_> = (0..3).map(|_| Counted::new(&count)).collect();
    sender.send_batch(&mut batch).await.expect("there is room");
    sender.send(Counted::new(&count)).await.expect("there is room");
    drop(receiver.recv().await);
    assert_eq!(count.load(Ordering::Relaxed), 3);
    drop(receiver);
    assert_eq!(count.load(Ordering::Relaxed), 0, "though a sender is alive");
    let back = sender.send(Counted::new(&count)).await.expect_err("nobody receives");
    assert_eq!(count.load(Ordering::Relaxed), 1);
    drop(back);
    assert_eq!(sender.gauge().snapshot().in_flight(), Load::default());
}

#[tokio::test]
async fn what_is_leased_counts_until_the_lease_ends() {
    let (sender, mut receiver) = windowed(Window { items: 3, bytes: 100 });
    for text in ["a", "bb", "ccc"] {
        assert!(sender.try_send(Text(text)).is_ok());
    }
    let mut out = Vec::new();
    let mut lease = receiver.lease_many(&mut out, 3).await.expect("three are queued");
    assert_eq!(out, [Text("a"), Text("bb"), Text("ccc")]);
    let snapshot = sender.gauge().snapshot();
    assert_eq!(snapshot.leased, Load { items: 3, bytes: 6 });
    assert_eq!((snapshot.queued, snapshot.departed_items_total), (Load::default(), 3));
    assert_eq!(sender.try_send(Text("d")), Err(TrySendError::Full(Text("d"))));

    lease.release(Weight::one(1));
    assert!(sender.try_send(Text("d")).is_ok());
    let part = lease.split(Weight::one(2));
    assert_eq!((part.load().bytes, lease.load().bytes), (2, 3));
    lease.release(Weight { items: 50, bytes: 50 });
    assert_eq!(lease.load(), Load::default(), "no more than it has");
    drop((part, lease, receiver));
    assert_eq!(sender.gauge().snapshot().in_flight(), Load::default());
}

#[tokio::test]
async fn bytes_are_a_bound_of_their_own() {
    let (sender, mut receiver) = windowed(Window { items: 100, bytes: 10 });
    assert!(sender.try_send(Text("123456")).is_ok());
    assert_eq!(sender.try_send(Text("12345")), Err(TrySendError::Full(Text("12345"))));
    assert!(sender.try_send(Text("1234")).is_ok());
    assert_eq!(receiver.recv().await, Some(Text("123456")));
    assert!(sender.try_send(Text("12345")).is_ok());
}

#[tokio::test]
async fn what_is_too_heavy_has_the_channel_for_itself() {
    let (sender, mut receiver) = windowed(Window { items: 4, bytes: 4 });
    assert!(sender.try_send(Text("ab")).is_ok());
    assert!(sender.try_send(Text("too heavy")).is_err(), "it is not alone");
    let other = sender.clone();
    let heavy = tokio::spawn(async move { other.send(Text("too heavy")).await.is_ok() });
    yield_now().await;
    assert!(
        sender.try_send(Text("c")).is_err(),
        "the heavy one waits for room, and is not starved"
    );
    assert_eq!(receiver.recv().await, Some(Text("ab")));
    assert!(timeout(LONG, heavy).await.expect("it is let in").expect("it does not panic"));
    assert_eq!(sender.gauge().snapshot().balance.bytes, -5);
    assert!(sender.try_send(Text("")).is_err());
    assert_eq!(receiver.recv().await, Some(Text("too heavy")));
    assert!(sender.try_send(Text("c")).is_ok());
}

/// While they wait, each is served as often as any other, to one turn.
#[tokio::test]
async fn waiting_senders_take_turns() {
    let (sender, mut receiver) = singles(2);
    for name in 0..5 {
        let sender = sender.clone();
        tokio::spawn(async move { while sender.send(Single(name)).await.is_ok() {} });
    }
    // The first to run fills the channel before anybody waits.
    for _ in 0..10 {
        receiver.recv().await;
        yield_now().await;
    }
    let mut turns = [0_i32; 5];
    for _ in 0..2_000 {
        let Single(name) = receiver.recv().await.expect("they send for ever");
        turns[name as usize] += 1;
        yield_now().await;
        let (least, most) = (turns.iter().min().copied(), turns.iter().max().copied());
        assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{turns:?}");
    }
}

/// The channel is always ready for both: without its share of the runtime's budget nobody else would run.
#[tokio::test]
async fn a_busy_channel_lets_others_run() {
    let (sender, mut receiver) = singles(64);
    tokio::spawn(async move { while sender.send(Single(0)).await.is_ok() {} });
    tokio::spawn(async move { while receiver.recv().await.is_some() {} });
    for _ in 0..100 {
        timeout(LONG, yield_now()).await.expect("it has its turn");
    }
    let (sender, mut receiver) = singles(1_000_000);
    for number in 0..500_000 {
        assert!(sender.try_send(Single(number)).is_ok());
    }
    let other = Arc::new(AtomicUsize::new(0));
    let turns = Arc::clone(&other);
    tokio::spawn(async move {
        loop {
            turns.fetch_add(1, Ordering::Relaxed);
            yield_now().await;
        }
    });
    yield_now().await;
    for _ in 0..500_000 {
        assert!(receiver.recv().await.is_some());
    }
    assert!(other.load(Ordering::Relaxed) > 100, "{other:?} turns beside half a million messages");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_senders_and_a_changing_window_keep_order_and_lose_nothing() {
    const SENDERS: u64 = 8;
    const MESSAGES: u64 = 20_000;
    let (sender, mut receiver) = windowed(Window::of_items(100));
    let gauge = sender.gauge();
    for name in 0..SENDERS {
        let sender = sender.clone();
        tokio::spawn(async move {
            let mut batch = Vec::new();
            for number in 0..MESSAGES {
                if name % 2 == 0 {
                    sender.send(Single((name, number))).await.expect("it is received");
                    continue;
                }
                batch.push(Single((name, number)));
                if batch.len() == 40 || number + 1 == MESSAGES {
                    sender.send_batch(&mut batch).await.expect("it is received");
                }
            }
        });
    }
    drop(sender);
    let (mut next, mut out, mut step) = ([0; SENDERS as usize], Vec::new(), 0_u32);
    while let Some(lease) = receiver.lease_many(&mut out, 50).await {
        for Single((name, number)) in out.drain(..) {
            assert_eq!(number, next[name as usize]);
            next[name as usize] += 1;
        }
        step += 1;
        gauge.resize(Window::of_items([1, 1_000, 17, 200][step as usize % 4]));
        drop(lease);
    }
    assert_eq!(next, [MESSAGES; SENDERS as usize]);
    let snapshot = gauge.snapshot();
    assert_eq!(snapshot.in_flight(), Load::default());
    assert_eq!(snapshot.balance.items, i64::from(snapshot.granted.items));
    assert_eq!(snapshot.arrived_items_total, SENDERS * MESSAGES);
    assert_eq!(snapshot.departed_items_total, SENDERS * MESSAGES);
}

#[test]
fn a_channel_at_work_allocates_nothing() {
    let (sender, mut receiver) = singles(1_000);
    let mut run = || {
        for number in 0..10_000 {
            assert!(sender.try_send(Single(number)).is_ok());
            if number % 3 == 2 {
                (0..3).for_each(|_| assert!(receiver.try_recv().is_ok()));
            }
        }
        while receiver.try_recv().is_ok() {}
    };
    run();
    assert_eq!(allocation_counter::measure(run).count_total, 0);
}
