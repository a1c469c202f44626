//! Random schedules of larger groups of threads over one channel, with everything that may happen to it at once.
//!
//! `make shuttle`: it needs a feature of its own.

use shuttle::future::block_on;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::thread;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use tidegate::channel::{
    Weigh, Weight, Window, WindowGauge, WindowedReceiver, WindowedSender, windowed,
};

const SCHEDULES: usize = 3_000;
const SENDERS: u32 = 4;
const MESSAGES: u32 = 6;

#[derive(Debug)]
struct Message {
    sender: u32,
    number: u32,
    weight: Weight,
}

impl Weigh for Message {
    fn weight(&self) -> Weight {
        self.weight
    }
}

/// By a random scheduler, and by one that prefers few, unlikely preemptions.
fn explore(model: fn()) {
    shuttle::check_random(model, SCHEDULES);
    shuttle::check_pct(model, SCHEDULES, 3);
}

fn message(sender: u32, number: u32) -> Message {
    let mut dice = thread_rng();
    let weight = Weight { items: dice.gen_range(0..4), bytes: dice.gen_range(0..40) };
    Message { sender, number, weight }
}

/// From nothing, where everything is too heavy, to where receives serve by twos.
fn window() -> Window {
    let mut dice = thread_rng();
    Window { items: dice.gen_range(0..20), bytes: dice.gen_range(0..200) }
}

/// Sends in one of the ways there are, sometimes giving up first. All that was sent, in order.
fn send_all(sender: &WindowedSender<Message>, name: u32) -> Vec<u32> {
    let mut sent = Vec::new();
    let mut number = 0;
    while number < MESSAGES {
        let ways = thread_rng().gen_range(0..5);
        let done = match ways {
            0 => block_on(sender.send(message(name, number))).is_ok(),
            1 => {
                let mut slot = Some(message(name, number));
                give_up_once(sender, &mut slot);
                // Given up too late, it is on its way already.
                slot.is_none() || block_on(sender.send_ref(&mut slot)).is_ok()
            }
            2 => sender.try_send(message(name, number)).is_ok(),
            3 => {
                let message = message(name, number);
                let slot = block_on(sender.reserve(message.weight));
                slot.is_ok_and(|slot| slot.send(message).is_ok())
            }
            _ => {
                let last = (number + 3).min(MESSAGES);
                let mut batch: Vec<_> = (number..last).map(|each| message(name, each)).collect();
                let _ = block_on(sender.send_batch(&mut batch));
                let first_unsent = batch.first().map_or(last, |unsent| unsent.number);
                sent.extend(number..first_unsent);
                number = last;
                continue;
            }
        };
        if done {
            sent.push(number);
        }
        number += 1;
    }
    sent
}

fn give_up_once(sender: &WindowedSender<Message>, slot: &mut Option<Message>) {
    let mut send = pin!(sender.send_ref(slot));
    let _ = send.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    thread::yield_now();
}

/// Receives in one of the ways there are, until the end or for so many messages.
fn receive(receiver: &mut WindowedReceiver<Message>, at_most: usize) -> Vec<Message> {
    let mut received = Vec::new();
    while received.len() < at_most {
        let count = match thread_rng().gen_range(0..3) {
            0 => {
                let message = block_on(receiver.recv());
                let count = usize::from(message.is_some());
                received.extend(message);
                count
            }
            1 => block_on(receiver.recv_many(&mut received, 3)),
            _ => {
                let before = received.len();
                let lease = block_on(receiver.lease_many(&mut received, 2));
                if let Some(mut lease) = lease {
                    lease.release(Weight::one(5));
                    thread::spawn(move || drop(lease));
                }
                received.len() - before
            }
        };
        if count == 0 {
            break;
        }
    }
    received
}

fn start_senders(sender: WindowedSender<Message>) -> Vec<thread::JoinHandle<Vec<u32>>> {
    let start = |name| {
        let sender = sender.clone();
        thread::spawn(move || send_all(&sender, name))
    };
    (0..SENDERS).map(start).collect()
}

fn start_resizer(gauge: WindowGauge) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for _ in 0..5 {
            gauge.resize(window());
            thread::yield_now();
        }
    })
}

/// What each sender sent, in its order, is what was received of it: all of it, or its beginning.
fn assert_in_order(received: &[Message], sent: &[Vec<u32>], all: bool) {
    for (name, sent) in (0..).zip(sent) {
        let of_it: Vec<_> =
            received.iter().filter(|each| each.sender == name).map(|each| each.number).collect();
        let expected = if all { sent } else { &sent[..of_it.len().min(sent.len())] };
        assert_eq!(of_it, *expected, "of sender {name}");
    }
}

/// Leases may still be on their way back, on threads of their own.
fn assert_all_returned(gauge: &WindowGauge) {
    let mut snapshot = gauge.snapshot();
    while snapshot.in_flight() != Default::default() {
        thread::yield_now();
        snapshot = gauge.snapshot();
    }
    assert_eq!(snapshot.balance.items, i64::from(snapshot.granted.items), "{snapshot:?}");
    assert_eq!(snapshot.balance.bytes, snapshot.granted.bytes as i64, "{snapshot:?}");
    assert_eq!(snapshot.senders_waiting, 0, "{snapshot:?}");
}

fn join<T>(thread: thread::JoinHandle<T>) -> T {
    thread.join().expect("it does not panic")
}

#[test]
fn shuttle_everything_sent_is_received_once_in_order_while_the_window_changes() {
    explore(|| {
        let (sender, mut receiver) = windowed(window());
        let gauge = sender.gauge();
        let resizer = start_resizer(gauge.clone());
        let senders = start_senders(sender);
        let received = receive(&mut receiver, usize::MAX);
        join(resizer);
        let sent: Vec<_> = senders.into_iter().map(join).collect();
        assert_in_order(&received, &sent, true);
        assert_all_returned(&gauge);
        let snapshot = gauge.snapshot();
        assert_eq!(snapshot.arrived_items_total, snapshot.departed_items_total, "{snapshot:?}");
    });
}

#[test]
fn shuttle_a_close_in_the_middle_loses_nothing() {
    explore(|| {
        let (sender, mut receiver) = windowed(window());
        let gauge = sender.gauge();
        let resizer = start_resizer(gauge.clone());
        let senders = start_senders(sender);
        let mut received = receive(&mut receiver, 8);
        receiver.close();
        received.extend(receive(&mut receiver, usize::MAX));
        join(resizer);
        let sent: Vec<_> = senders.into_iter().map(join).collect();
        assert_in_order(&received, &sent, true);
        assert_all_returned(&gauge);
    });
}

#[test]
fn shuttle_a_receiver_that_goes_frees_everybody() {
    explore(|| {
        let (sender, mut receiver) = windowed(window());
        let gauge = sender.gauge();
        let resizer = start_resizer(gauge.clone());
        let senders = start_senders(sender);
        let received = receive(&mut receiver, 5);
        drop(receiver);
        join(resizer);
        let sent: Vec<_> = senders.into_iter().map(join).collect();
        assert_in_order(&received, &sent, false);
        assert_all_returned(&gauge);
    });
}

/// The limit is exact at every moment: seen from beside, no more is in flight than the window, unless it is one
/// message alone.
#[test]
fn shuttle_no_race_admits_more_than_the_window() {
    explore(|| {
        let (sender, mut receiver) = windowed(Window { items: 5, bytes: 60 });
        let gauge = sender.gauge();
        let senders = start_senders(sender);
        let log = Arc::new(Mutex::new(Vec::new()));
        let reader = thread::spawn({
            let (gauge, log) = (gauge.clone(), Arc::clone(&log));
            move || {
                for _ in 0..20 {
                    let snapshot = gauge.snapshot();
                    log.lock().expect("it does not panic").push(snapshot);
                    thread::yield_now();
                }
            }
        });
        receive(&mut receiver, usize::MAX);
        join(reader);
        senders.into_iter().for_each(|sender| drop(join(sender)));
        for snapshot in log.lock().expect("it does not panic").iter() {
            let within = snapshot.balance.items >= 0 && snapshot.balance.bytes >= 0;
            assert!(within, "{snapshot:?}");
        }
        assert_all_returned(&gauge);
    });
}
