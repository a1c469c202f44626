//! A sender and a receiver in virtual time, coupled by signals: the loop as a whole must not latch.

use proptest::prelude::*;
use std::time::Duration;
use tidegate_core::admission::MessageClass;
use tidegate_core::signal::{
    BackpressureLevel, BackpressureSignal, Flush, FlushPolicy, LevelConfig, LevelGauge,
    SignalBoard, Waiting,
};

const CAPACITY: u64 = 1_000;
const POLICY: FlushPolicy =
    FlushPolicy { batch_updates: 100, batch_bytes: u64::MAX, linger: Duration::from_millis(5) };

/// Takes what fits, and drains a steady amount each millisecond.
struct Receiver {
    gauge: LevelGauge,
    waiting: u64,
    consumed: u64,
    drain_per_ms: u64,
}

/// Sends what it is given as the policy says.
struct Sender {
    board: SignalBoard<u8>,
    waiting: u64,
    since: Duration,
    last_sent: Option<Duration>,
    refused: u64,
}

impl Receiver {
    fn new(drain_per_ms: u64) -> Self {
        let gauge = LevelGauge::new(LevelConfig::default()).unwrap();
        Self { gauge, waiting: 0, consumed: 0, drain_per_ms }
    }

    fn drain(&mut self) {
        let taken = self.waiting.min(self.drain_per_ms);
        self.waiting -= taken;
        self.consumed += taken;
        self.gauge.observe(self.waiting, CAPACITY);
    }

    /// Tells whether it took the batch, and what it asks for now.
    fn receive(&mut self, updates: u64) -> (bool, BackpressureSignal) {
        let fits = self.waiting + updates <= CAPACITY;
        if fits && self.gauge.signal().accepts(MessageClass::Data, updates) {
            self.waiting += updates;
            self.gauge.observe(self.waiting, CAPACITY);
            return (true, self.gauge.signal());
        }
        (false, self.gauge.signal())
    }
}

impl Sender {
    fn new() -> Self {
        let since = Duration::ZERO;
        Self { board: SignalBoard::new(4), waiting: 0, since, last_sent: None, refused: 0 }
    }

    fn produce(&mut self, updates: u64, now: Duration) {
        if self.waiting == 0 {
            self.since = now;
        }
        self.waiting += updates;
    }

    /// Sends all that may be sent now; an answer comes at once, or never from a receiver that is mute.
    fn flush(&mut self, receiver: &mut Receiver, mute: bool, now: Duration) {
        loop {
            let waiting = Waiting {
                class: MessageClass::Data,
                updates: self.waiting,
                bytes: 0,
                since: self.since,
            };
            let signal = self.board.current(now);
            let updates = match POLICY.decide(&signal, &waiting, self.last_sent, now) {
                Flush::Idle | Flush::WaitUntil(_) => return,
                Flush::SendNow => self.waiting,
                Flush::SendBatchOf(updates) | Flush::Probe(updates) => updates,
            };
            self.last_sent = Some(now);
            let (taken, signal) = receiver.receive(updates);
            if !mute {
                self.board.record(1, signal, now);
            }
            if !taken {
                self.refused += 1;
                return;
            }
            self.waiting -= updates;
            self.since = now;
        }
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Updates each millisecond of an overload, at most 5 times what is drained.
fn loads() -> impl Strategy<Value = Vec<u64>> {
    let stretch = (0..=50_u64, 1..400_usize).prop_map(|(rate, length)| vec![rate; length]);
    prop::collection::vec(stretch, 1..12).prop_map(|stretches| stretches.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After any load ends, every update has arrived once, and the level is NONE again.
    #[test]
    fn after_any_overload_all_arrives_and_nothing_is_asked_for(load in loads()) {
        let (mut sender, mut receiver) = (Sender::new(), Receiver::new(10));
        let produced: u64 = load.iter().sum();
        // What is left at the end of the load drains at 10 a millisecond at best; a refusal costs half a second.
        let end = load.len() as u64 + produced + 20_000;
        let mut silent_since = 0;
        for now in 0..end {
            let sent_before = sender.last_sent;
            sender.produce(load.get(now as usize).copied().unwrap_or(0), ms(now));
            sender.flush(&mut receiver, false, ms(now));
            receiver.drain();
            if sender.last_sent != sent_before || sender.waiting == 0 {
                silent_since = now;
            }
            prop_assert!(now - silent_since <= 510, "silent from {silent_since} to {now} ms");
        }
        prop_assert_eq!((receiver.consumed, sender.waiting, receiver.waiting), (produced, 0, 0));
        prop_assert_eq!(receiver.gauge.level(), BackpressureLevel::None);
    }

    /// The buffer does not overflow in the long run: the signal slows the sender down before it is full.
    #[test]
    fn heeding_signals_keeps_refusals_rare(rate in 11..200_u64) {
        let (mut sender, mut receiver) = (Sender::new(), Receiver::new(10));
        for now in 0..5_000 {
            sender.produce(rate, ms(now));
            sender.flush(&mut receiver, false, ms(now));
            receiver.drain();
        }
        prop_assert!(sender.refused <= 10, "{} refusals in 5 s", sender.refused);
        // Drained all the time: holding back never starves the receiver for long.
        prop_assert!(receiver.consumed >= 40_000, "{} of 50,000", receiver.consumed);
    }
}

/// The receiver goes mute while it asks for REJECT: the sender goes on by itself when the signal expires.
#[test]
fn a_receiver_that_goes_mute_at_reject_holds_nobody_for_longer_than_its_signal() {
    let (mut sender, mut receiver) = (Sender::new(), Receiver::new(10));
    let signal = receiver.gauge.signal_of(BackpressureLevel::Reject);
    sender.board.record(1, signal, ms(0));
    sender.produce(5_000, ms(0));
    let mut sent_at = Vec::new();
    for now in 0..6_000 {
        let before = sender.waiting;
        sender.flush(&mut receiver, true, ms(now));
        receiver.drain();
        if sender.waiting < before {
            sent_at.push(now);
        }
    }
    let probes = sent_at.iter().filter(|at| **at < 5_000).count();
    assert_eq!(probes, 10, "one each half second: {sent_at:?}");
    assert_eq!(sent_at.iter().find(|at| **at >= 5_000), Some(&5_000));
    assert_eq!(sender.waiting, 0);
}
