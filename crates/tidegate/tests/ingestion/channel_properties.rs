//! What holds after every sequence of things that may happen to a channel.
//!
//! All of it runs on one thread, where futures are polled by hand: a model beside the channel says what it must
//! hold at every step.

use proptest::prelude::*;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tidegate::channel::{
    Lease, Load, SendError, Single, TrySendError, Weigh, Weight, Window, WindowSnapshot,
    WindowedReceiver, WindowedSender, windowed,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Message {
    sender: usize,
    number: u32,
    weight: Weight,
}

type Send = Pin<Box<dyn Future<Output = Result<(), SendError<Message>>>>>;

#[derive(Clone, Debug)]
enum Step {
    Send { sender: usize, weight: Weight },
    TrySend { sender: usize, weight: Weight },
    SendBatch { sender: usize, weights: Vec<Weight> },
    GiveUp(prop::sample::Index),
    Recv,
    RecvMany(usize),
    Lease(usize),
    ReleasePart(prop::sample::Index, Weight),
    EndLease(prop::sample::Index),
    Resize(Window),
    Close,
}

/// The channel, and what it must hold.
struct World {
    senders: Vec<WindowedSender<Message>>,
    receiver: WindowedReceiver<Message>,
    window: Window,
    queued: VecDeque<Message>,
    leases: Vec<(Lease, Load)>,
    /// Those who wait, in the order in which they began to.
    waiting: VecDeque<(Message, Send)>,
    numbers: Vec<u32>,
    arrived_items: u64,
    departed_items: u64,
    waits: u64,
    closed: bool,
}

const SENDERS: usize = 3;

// === impl Message ===

impl Weigh for Message {
    fn weight(&self) -> Weight {
        self.weight
    }
}

// === impl World ===

impl World {
    fn new(window: Window) -> Self {
        let (sender, receiver) = windowed(window);
        Self {
            senders: vec![sender; SENDERS],
            receiver,
            window,
            queued: VecDeque::new(),
            leases: Vec::new(),
            waiting: VecDeque::new(),
            numbers: vec![0; SENDERS],
            arrived_items: 0,
            departed_items: 0,
            waits: 0,
            closed: false,
        }
    }

    fn snapshot(&self) -> WindowSnapshot {
        self.receiver.gauge().snapshot()
    }

    fn message(&mut self, sender: usize, weight: Weight) -> Message {
        self.numbers[sender] += 1;
        Message { sender, number: self.numbers[sender], weight }
    }

    fn in_flight(&self) -> Load {
        let queued = load(self.queued.iter());
        self.leases.iter().fold(queued, |sum, (_, lease)| plus(sum, *lease))
    }

    /// By the rule, not by the code: both bounds hold, or it is too heavy for the window and alone.
    fn may_enter(&self, weight: Weight) -> bool {
        let (load, in_flight) = (charge(weight), self.in_flight());
        let after = plus(load, in_flight);
        let too_heavy = load.items > u64::from(self.window.items) || load.bytes > self.window.bytes;
        let fits = after.items <= u64::from(self.window.items) && after.bytes <= self.window.bytes;
        fits || (too_heavy && in_flight == Load::default())
    }

    fn enter(&mut self, message: Message) {
        self.arrived_items += charge(message.weight).items;
        self.queued.push_back(message);
    }

    fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Send { sender, weight } => self.send(sender, weight)?,
            Step::TrySend { sender, weight } => self.try_send(sender, weight)?,
            Step::SendBatch { sender, weights } => self.send_batch(sender, &weights)?,
            Step::GiveUp(which) if !self.waiting.is_empty() => {
                let at = which.index(self.waiting.len());
                self.waiting.remove(at);
            }
            Step::Recv => match self.receiver.try_recv() {
                Ok(message) => self.leave(&[message])?,
                Err(_) => prop_assert!(self.queued.is_empty()),
            },
            Step::RecvMany(limit) => self.recv_many(limit)?,
            Step::Lease(limit) => self.lease(limit)?,
            Step::ReleasePart(which, weight) if !self.leases.is_empty() => {
                let at = which.index(self.leases.len());
                let (lease, load) = &mut self.leases[at];
                lease.release(weight);
                load.items -= load.items.min(weight.items.into());
                load.bytes -= load.bytes.min(weight.bytes.into());
                prop_assert_eq!(lease.load(), *load);
            }
            Step::EndLease(which) if !self.leases.is_empty() => {
                drop(self.leases.swap_remove(which.index(self.leases.len())));
            }
            Step::Resize(window) => {
                self.receiver.gauge().resize(window);
                self.window = window;
            }
            Step::Close => {
                self.receiver.close();
                self.closed = true;
            }
            Step::GiveUp(_) | Step::ReleasePart(..) | Step::EndLease(_) => {}
        }
        self.settle()?;
        self.check()
    }

    fn send(&mut self, sender: usize, weight: Weight) -> Result<(), TestCaseError> {
        let message = self.message(sender, weight);
        let own = self.senders[sender].clone();
        let mut send: Send = Box::pin(async move { own.send(message).await });
        let free = self.waiting.is_empty() && self.may_enter(weight);
        match poll(&mut send) {
            Poll::Ready(Ok(())) => {
                prop_assert!(free && !self.closed, "{:?} overtook, or is too much", message);
                self.enter(message);
            }
            Poll::Ready(Err(SendError(back))) => {
                prop_assert!(self.closed);
                prop_assert_eq!(back, message);
            }
            Poll::Pending => {
                prop_assert!(!free && !self.closed, "{:?} waits for nothing", message);
                self.waits += 1;
                self.waiting.push_back((message, send));
            }
        }
        Ok(())
    }

    fn try_send(&mut self, sender: usize, weight: Weight) -> Result<(), TestCaseError> {
        let message = self.message(sender, weight);
        let free = self.waiting.is_empty() && self.may_enter(weight);
        match self.senders[sender].try_send(message) {
            Ok(()) => {
                prop_assert!(free && !self.closed, "{:?} overtook, or is too much", message);
                self.enter(message);
            }
            Err(TrySendError::Full(back)) => {
                prop_assert!(!free && !self.closed, "{:?} is refused for nothing", message);
                prop_assert_eq!(back, message);
            }
            Err(TrySendError::Closed(back)) => {
                prop_assert!(self.closed);
                prop_assert_eq!(back, message);
            }
        }
        Ok(())
    }

    /// As many as fit at once; then it gives up, and has the rest.
    fn send_batch(&mut self, sender: usize, weights: &[Weight]) -> Result<(), TestCaseError> {
        let mut batch: Vec<_> = weights.iter().map(|w| self.message(sender, *w)).collect();
        let all = batch.clone();
        let waited = {
            let own = self.senders[sender].clone();
            let mut send = Box::pin(own.send_batch(&mut batch));
            poll(&mut send).is_pending()
        };
        let sent = all.len() - batch.len();
        prop_assert_eq!(&batch[..], &all[sent..], "the rest is in order");
        prop_assert!(sent == 0 || self.waiting.is_empty(), "it overtook");
        for message in &all[..sent] {
            prop_assert!(self.may_enter(message.weight), "{:?} is too much", message);
            self.enter(*message);
        }
        if let Some(next) = batch.first() {
            prop_assert_eq!(waited, !self.closed);
            let free = self.waiting.is_empty() && self.may_enter(next.weight);
            prop_assert!(self.closed || !free, "{:?} waits for nothing", next);
            self.waits += u64::from(waited);
        }
        Ok(())
    }

    fn recv_many(&mut self, limit: usize) -> Result<(), TestCaseError> {
        let mut out = Vec::new();
        let count = poll(&mut Box::pin(self.receiver.recv_many(&mut out, limit)));
        match count {
            Poll::Pending => prop_assert!(self.queued.is_empty()),
            Poll::Ready(count) => prop_assert_eq!(count, limit.min(self.queued.len())),
        }
        self.leave(&out)
    }

    fn lease(&mut self, limit: usize) -> Result<(), TestCaseError> {
        let mut out = Vec::new();
        if let Ok(lease) = self.receiver.try_lease_many(&mut out, limit) {
            prop_assert_eq!(out.len(), limit.min(self.queued.len()));
            prop_assert_eq!(lease.load(), load(out.iter()));
            self.leases.push((lease, load(out.iter())));
        } else {
            prop_assert!(self.queued.is_empty());
        }
        self.leave(&out)
    }

    fn leave(&mut self, received: &[Message]) -> Result<(), TestCaseError> {
        for message in received {
            prop_assert_eq!(self.queued.pop_front(), Some(*message));
            self.departed_items += charge(message.weight).items;
        }
        Ok(())
    }

    /// Lets those run who wait. They are let in from the front and by the rule; and the first stays only while it
    /// does not fit, or while a large window has hardly any room and something is queued.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        let mut still = VecDeque::new();
        while let Some((message, mut send)) = self.waiting.pop_front() {
            match poll(&mut send) {
                Poll::Ready(Ok(())) => {
                    prop_assert!(still.is_empty(), "{:?} overtook", message);
                    prop_assert!(self.may_enter(message.weight), "{:?} is too much", message);
                    self.enter(message);
                }
                Poll::Ready(Err(SendError(back))) => {
                    prop_assert!(self.closed);
                    prop_assert_eq!(back, message);
                }
                Poll::Pending => still.push_back((message, send)),
            }
        }
        self.waiting = still;
        if let Some((first, _)) = self.waiting.front() {
            prop_assert!(!self.closed);
            let prompt = self.window.items < 16 || self.queued.is_empty();
            prop_assert!(!prompt || !self.may_enter(first.weight), "{:?} is forgotten", first);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let snapshot = self.snapshot();
        let leased = self.leases.iter().fold(Load::default(), |sum, (_, lease)| plus(sum, *lease));
        prop_assert_eq!(snapshot.granted, self.window);
        prop_assert_eq!(snapshot.queued, load(self.queued.iter()));
        prop_assert_eq!(snapshot.leased, leased);
        prop_assert_eq!(snapshot.reserved, Load::default());
        prop_assert_eq!(snapshot.senders_waiting, self.waiting.len());
        prop_assert_eq!(snapshot.waits_total, self.waits);
        prop_assert_eq!(snapshot.arrived_items_total, self.arrived_items);
        prop_assert_eq!(snapshot.departed_items_total, self.departed_items);
        let in_flight = self.in_flight();
        let items = snapshot.balance.items + in_flight.items as i64;
        let bytes = snapshot.balance.bytes + in_flight.bytes as i64;
        prop_assert_eq!(items, i64::from(self.window.items));
        prop_assert_eq!(bytes, self.window.bytes as i64);
        Ok(())
    }

    /// Everything that was sent is received in the end, and everything is free.
    fn finish(mut self) -> Result<(), TestCaseError> {
        while !self.queued.is_empty() || !self.waiting.is_empty() || !self.leases.is_empty() {
            self.leases.clear();
            self.step(Step::Recv)?;
        }
        let balance = self.snapshot().balance;
        prop_assert_eq!(balance.items, i64::from(self.window.items));
        prop_assert_eq!(balance.bytes, self.window.bytes as i64);
        Ok(())
    }
}

fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn charge(weight: Weight) -> Load {
    Load { items: u64::from(weight.items.max(1)), bytes: weight.bytes.into() }
}

fn plus(one: Load, other: Load) -> Load {
    Load { items: one.items + other.items, bytes: one.bytes + other.bytes }
}

fn load<'a>(messages: impl Iterator<Item = &'a Message>) -> Load {
    messages.fold(Load::default(), |sum, message| plus(sum, charge(message.weight)))
}

fn weights() -> impl Strategy<Value = Weight> {
    (0_u32..6, 0_u32..30).prop_map(|(items, bytes)| Weight { items, bytes })
}

/// From nothing, where everything is too heavy, to where receives serve by fours.
fn windows() -> impl Strategy<Value = Window> {
    (prop_oneof![0_u32..12, 0_u32..40], 0_u64..200)
        .prop_map(|(items, bytes)| Window { items, bytes })
}

fn steps() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>();
    prop_oneof![
        6 => (0..SENDERS, weights()).prop_map(|(sender, weight)| Step::Send { sender, weight }),
        3 => (0..SENDERS, weights()).prop_map(|(sender, weight)| Step::TrySend { sender, weight }),
        2 => (0..SENDERS, prop::collection::vec(weights(), 0..90))
            .prop_map(|(sender, weights)| Step::SendBatch { sender, weights }),
        2 => index.prop_map(Step::GiveUp),
        4 => Just(Step::Recv),
        2 => (0_usize..80).prop_map(Step::RecvMany),
        2 => (1_usize..6).prop_map(Step::Lease),
        1 => (any::<prop::sample::Index>(), weights())
            .prop_map(|(which, weight)| Step::ReleasePart(which, weight)),
        2 => any::<prop::sample::Index>().prop_map(Step::EndLease),
        2 => windows().prop_map(Step::Resize),
    ]
}

/// Now and then something closes it, and life goes on.
fn lives() -> impl Strategy<Value = (Window, Vec<Step>)> {
    let steps = prop::collection::vec(steps(), 0..120);
    let close = prop::option::weighted(0.3, any::<prop::sample::Index>());
    (windows(), steps, close).prop_map(|(window, mut steps, close)| {
        if let Some(at) = close {
            steps.insert(at.index(steps.len() + 1), Step::Close);
        }
        (window, steps)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Conservation, order, fairness, both bounds and the rule for what is too heavy, after every step.
    #[test]
    fn a_channel_holds_what_was_sent_and_not_received((window, steps) in lives()) {
        let mut world = World::new(window);
        for step in steps {
            world.step(step)?;
        }
        world.finish()?;
    }

    /// A window that shrinks below what is in flight is reached when exactly the difference was received.
    #[test]
    fn a_shrink_is_repaid_by_exactly_the_difference(before in 1_u32..300, after in 0_u32..300) {
        let (sender, mut receiver) = windowed(Window::of_items(before));
        for number in 0..before {
            prop_assert!(sender.try_send(Single(number)).is_ok());
        }
        let gauge = sender.gauge();
        gauge.resize(Window::of_items(after));
        for received in 0..before.saturating_sub(after) {
            prop_assert!(gauge.snapshot().balance.items < 0);
            prop_assert!(sender.try_send(Single(0)).is_err());
            prop_assert_eq!(receiver.try_recv(), Ok(Single(received)));
        }
        let room = i64::from(after) - i64::from(before.min(after));
        prop_assert_eq!(gauge.snapshot().balance.items, room);
        for _ in 0..room {
            prop_assert!(sender.try_send(Single(0)).is_ok());
        }
        // With nothing in flight a window of nothing still lets one in, so that nothing is stuck for ever.
        prop_assert_eq!(sender.try_send(Single(0)).is_ok(), after == 0);
    }
}
