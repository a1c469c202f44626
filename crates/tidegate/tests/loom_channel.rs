//! Every interleaving of small groups of threads over one channel, up to a number of preemptions. A wake-up that
//! is lost is a deadlock here, which loom reports.
//!
//! `make loom`: it needs a feature of its own.

use loom::future::block_on;
use loom::thread;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use tidegate::channel::{
    Single, Weigh, Weight, Window, WindowGauge, WindowedReceiver, WindowedSender, windowed,
};

/// So many items, and a number to know it by.
#[derive(Debug, PartialEq, Eq)]
struct Heavy {
    items: u32,
    number: u32,
}

impl Weigh for Heavy {
    fn weight(&self) -> Weight {
        Weight { items: self.items, bytes: 0 }
    }
}

/// Two threads. Faults of this kind show with few preemptions; without a bound these models take hours.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    explore_with(3, model);
}

/// Three threads.
fn explore_three(model: impl Fn() + Send + Sync + 'static) {
    explore_with(2, model);
}

fn explore_with(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

fn singles(items: u32) -> (WindowedSender<Single<u32>>, WindowedReceiver<Single<u32>>) {
    windowed(Window::of_items(items))
}

fn heavy(items: u32, number: u32) -> Heavy {
    Heavy { items, number }
}

fn fill<T: Weigh>(sender: &WindowedSender<T>, messages: impl IntoIterator<Item = T>) {
    for message in messages {
        assert!(sender.try_send(message).is_ok(), "there is room");
    }
}

/// Polls once, with nobody to wake.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn drain<T: Weigh>(receiver: &mut WindowedReceiver<T>) -> Vec<T> {
    let mut received = Vec::new();
    while let Some(message) = block_on(receiver.recv()) {
        received.push(message);
    }
    received
}

/// Nothing moves any more, and nothing is in the channel.
fn assert_all_returned(gauge: &WindowGauge) {
    let snapshot = gauge.snapshot();
    assert_eq!(snapshot.balance.items, i64::from(snapshot.granted.items), "{snapshot:?}");
    assert_eq!(snapshot.balance.bytes, snapshot.granted.bytes as i64, "{snapshot:?}");
    assert_eq!(snapshot.senders_waiting, 0, "{snapshot:?}");
    assert_eq!(snapshot.arrived_items_total, snapshot.departed_items_total, "{snapshot:?}");
}

#[test]
fn loom_two_senders_share_one_place_and_all_arrives() {
    explore_three(|| {
        let (sender, mut receiver) = singles(1);
        let gauge = sender.gauge();
        let other = sender.clone();
        let thread = thread::spawn(move || block_on(other.send(Single(1))).is_ok());
        let second = thread::spawn(move || block_on(sender.send(Single(2))).is_ok());
        let mut received: Vec<_> =
            drain(&mut receiver).into_iter().map(|single| single.0).collect();
        received.sort_unstable();
        assert_eq!(received, [1, 2]);
        assert!(thread.join().expect("it does not panic"));
        assert!(second.join().expect("it does not panic"));
        assert_all_returned(&gauge);
    });
}

#[test]
fn loom_one_sender_is_received_in_order_while_the_window_changes() {
    explore(|| {
        let (sender, mut receiver) = singles(1);
        let gauge = sender.gauge();
        let thread = thread::spawn(move || {
            for number in 0..2 {
                assert!(block_on(sender.send(Single(number))).is_ok());
            }
        });
        gauge.resize(Window::of_items(2));
        assert_eq!(drain(&mut receiver), [Single(0), Single(1)]);
        thread.join().expect("it does not panic");
        assert_all_returned(&gauge);
    });
}

#[test]
fn loom_growth_alone_lets_a_sender_in() {
    explore(|| {
        let (sender, receiver) = singles(1);
        fill(&sender, [Single(0)]);
        let gauge = sender.gauge();
        let thread = thread::spawn(move || block_on(sender.send(Single(1))).is_ok());
        gauge.resize(Window::of_items(2));
        assert!(thread.join().expect("it does not panic"));
        let snapshot = gauge.snapshot();
        assert_eq!((snapshot.balance.items, snapshot.queued.items), (0, 2));
        drop(receiver);
        assert_all_returned_but_arrivals(&gauge);
    });
}

#[test]
fn loom_a_message_too_heavy_for_a_window_that_shrank_is_let_in_when_it_is_alone() {
    explore(|| {
        let (sender, mut receiver) = windowed(Window::of_items(3));
        fill(&sender, [heavy(2, 0)]);
        let gauge = sender.gauge();
        let thread = thread::spawn(move || block_on(sender.send(heavy(3, 1))).is_ok());
        gauge.resize(Window::of_items(1));
        let received: Vec<_> = drain(&mut receiver).iter().map(|heavy| heavy.number).collect();
        assert_eq!(received, [0, 1]);
        assert!(thread.join().expect("it does not panic"));
        assert_all_returned(&gauge);
    });
}

#[test]
fn loom_the_last_place_goes_to_exactly_one() {
    explore(|| {
        let (sender, mut receiver) = singles(2);
        fill(&sender, [Single(0), Single(1)]);
        let gauge = sender.gauge();
        let other = sender.clone();
        let thread = thread::spawn(move || other.try_send(Single(2)).is_ok());
        assert!(receiver.try_recv().is_ok());
        let mine = sender.try_send(Single(3)).is_ok();
        let theirs = thread.join().expect("it does not panic");
        assert!(mine != theirs, "one place, taken {} times", u8::from(mine) + u8::from(theirs));
        assert_eq!(gauge.snapshot().balance.items, 0);
    });
}

#[test]
fn loom_a_message_is_sent_or_comes_back_when_the_receiver_closes() {
    explore(|| {
        let (sender, mut receiver) = singles(1);
        let gauge = sender.gauge();
        let thread = thread::spawn(move || block_on(sender.send(Single(7))));
        receiver.close();
        let received = drain(&mut receiver);
        match thread.join().expect("it does not panic") {
            Ok(()) => assert_eq!(received, [Single(7)]),
            Err(error) => {
                assert_eq!(error.into_inner(), Single(7));
                assert_eq!(received, []);
            }
        }
        assert_all_returned(&gauge);
    });
}

#[test]
fn loom_one_who_waits_gets_its_message_back_when_the_receiver_goes() {
    explore(|| {
        let (sender, receiver) = singles(1);
        fill(&sender, [Single(0)]);
        let gauge = sender.gauge();
        let thread = thread::spawn(move || block_on(sender.send(Single(1))));
        drop(receiver);
        let error = thread.join().expect("it does not panic").expect_err("nobody received");
        assert_eq!(error.into_inner(), Single(1));
        assert_all_returned_but_arrivals(&gauge);
    });
}

/// What is dropped unreceived has arrived and never departs.
fn assert_all_returned_but_arrivals(gauge: &WindowGauge) {
    let snapshot = gauge.snapshot();
    assert_eq!(snapshot.balance.items, i64::from(snapshot.granted.items), "{snapshot:?}");
    assert_eq!(snapshot.senders_waiting, 0, "{snapshot:?}");
}

#[test]
fn loom_one_who_gives_up_hands_its_turn_to_the_next() {
    explore(|| {
        let (sender, mut receiver) = singles(1);
        fill(&sender, [Single(0)]);
        let gauge = sender.gauge();
        let (quitter, patient) = (sender.clone(), sender);
        let thread = thread::spawn(move || {
            {
                let mut send = pin!(quitter.send(Single(1)));
                let _ = poll_once(send.as_mut());
            }
            drop(quitter);
            block_on(patient.send(Single(2))).is_ok()
        });
        let received = drain(&mut receiver);
        assert!(thread.join().expect("it does not panic"));
        assert_eq!(received.first(), Some(&Single(0)));
        assert_eq!(received.last(), Some(&Single(2)));
        assert_all_returned(&gauge);
    });
}

#[test]
fn loom_one_who_gives_up_races_one_who_waits_behind_it() {
    explore_three(|| {
        let (sender, mut receiver) = singles(1);
        fill(&sender, [Single(0)]);
        let gauge = sender.gauge();
        let (quitter, patient) = (sender.clone(), sender);
        let first = thread::spawn(move || {
            let mut send = pin!(quitter.send(Single(1)));
            let _ = poll_once(send.as_mut());
        });
        let second = thread::spawn(move || block_on(patient.send(Single(2))).is_ok());
        let received = drain(&mut receiver);
        first.join().expect("it does not panic");
        assert!(second.join().expect("it does not panic"));
        assert!(received.contains(&Single(2)));
        assert_all_returned(&gauge);
    });
}

#[test]
fn loom_a_slot_that_is_dropped_after_the_close_ends_the_channel() {
    explore(|| {
        let (sender, mut receiver) = singles(1);
        let gauge = sender.gauge();
        let thread = thread::spawn(move || {
            let slot = block_on(sender.reserve(Weight::one(0)));
            drop(slot);
            sender
        });
        receiver.close();
        assert_eq!(block_on(receiver.recv()), None);
        let _sender = thread.join().expect("it does not panic");
        assert_all_returned(&gauge);
    });
}

#[test]
fn loom_a_lease_that_ends_elsewhere_lets_a_sender_in() {
    explore(|| {
        let (sender, mut receiver) = singles(1);
        fill(&sender, [Single(0)]);
        let gauge = sender.gauge();
        let mut out = Vec::new();
        let lease = receiver.try_lease_many(&mut out, 1).expect("one is queued");
        let thread = thread::spawn(move || drop(lease));
        assert!(block_on(sender.send(Single(1))).is_ok());
        thread.join().expect("it does not panic");
        let snapshot = gauge.snapshot();
        assert_eq!((snapshot.queued.items, snapshot.leased.items), (1, 0));
    });
}

#[test]
fn loom_the_last_sender_that_goes_ends_the_channel() {
    explore_three(|| {
        let (sender, mut receiver) = singles(1);
        let other = sender.clone();
        let thread = thread::spawn(move || drop(other));
        let second = thread::spawn(move || drop(sender));
        assert_eq!(block_on(receiver.recv()), None);
        thread.join().expect("it does not panic");
        second.join().expect("it does not panic");
    });
}

#[test]
fn loom_senders_are_told_of_the_close() {
    explore(|| {
        let (sender, mut receiver) = singles(1);
        let thread = thread::spawn(move || block_on(sender.closed()));
        receiver.close();
        thread.join().expect("it does not panic");
    });
}

/// A window of 16 is served by twos: the receives that come first free less.
#[test]
fn loom_what_is_held_back_is_served_before_the_receiver_sleeps() {
    explore(|| {
        let (sender, mut receiver) = windowed(Window::of_items(16));
        fill(&sender, [heavy(1, 0), heavy(15, 1)]);
        let gauge = sender.gauge();
        let thread = thread::spawn(move || block_on(sender.send(heavy(1, 2))).is_ok());
        let received: Vec<_> = drain(&mut receiver).iter().map(|heavy| heavy.number).collect();
        assert_eq!(received, [0, 1, 2]);
        assert!(thread.join().expect("it does not panic"));
        assert_all_returned(&gauge);
    });
}

#[test]
fn loom_a_batch_passes_a_window_that_it_does_not_fit() {
    explore(|| {
        let (sender, mut receiver) = singles(2);
        let gauge = sender.gauge();
        let thread = thread::spawn(move || {
            let mut batch = vec![Single(0), Single(1), Single(2)];
            block_on(sender.send_batch(&mut batch)).is_ok() && batch.is_empty()
        });
        let mut received = Vec::new();
        while block_on(receiver.recv_many(&mut received, 2)) > 0 {}
        assert_eq!(received, [Single(0), Single(1), Single(2)]);
        assert!(thread.join().expect("it does not panic"));
        assert_all_returned(&gauge);
    });
}

#[test]
fn loom_readings_never_show_more_than_the_window() {
    explore_three(|| {
        let (sender, mut receiver) = singles(1);
        let gauge = sender.gauge();
        let thread = thread::spawn(move || sender.try_send(Single(0)).is_ok());
        let reader = gauge.clone();
        let second = thread::spawn(move || {
            let (before, after) = (reader.snapshot(), reader.snapshot());
            assert!(before.balance.items >= 0 && after.balance.items >= 0, "{before:?} {after:?}");
            assert!(before.arrived_items_total <= after.arrived_items_total);
            assert!(before.departed_items_total <= after.departed_items_total);
            assert!(after.arrived_items_total <= 1);
        });
        assert_eq!(drain(&mut receiver).len(), 1);
        assert!(thread.join().expect("it does not panic"));
        second.join().expect("it does not panic");
        assert_all_returned(&gauge);
    });
}
