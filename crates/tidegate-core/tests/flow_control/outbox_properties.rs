//! Random sequences of putting, taking and putting back, compared step by step with a plain list.

use proptest::prelude::*;
use std::collections::BTreeSet;
use tidegate_core::admission::MessageClass::{self, Control, Data, Dispatch, Telemetry};
use tidegate_core::outbox::{QueueConfig, QueueState, RefusedReason, RobustQueue};

/// A message that knows its class and when it was first put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    number: u64,
    class: Class,
}

/// The classes in an order, for sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Control,
    Dispatch,
    Data,
    Telemetry,
}

#[derive(Clone, Debug)]
enum Step {
    Put(Class),
    Get,
    GetBatch(usize),
    /// Puts this many of the messages taken last back, the last first.
    PutBack(usize),
}

/// Reference model without optimisation: one list for the queue, one for control.
struct Model {
    config: QueueConfig,
    line: Vec<Message>,
    control: Vec<Message>,
    state: QueueState,
}

/// Where every message is, as the test sees it from outside.
#[derive(Default)]
struct Tally {
    accepted: u64,
    taken: Vec<Message>,
    put_back: u64,
    dropped: Vec<Message>,
    refused: u64,
}

// === impl Class ===

impl From<Class> for MessageClass {
    fn from(class: Class) -> Self {
        match class {
            Class::Control => Control,
            Class::Dispatch => Dispatch,
            Class::Data => Data,
            Class::Telemetry => Telemetry,
        }
    }
}

// === impl Model ===

impl Model {
    fn new(config: QueueConfig) -> Self {
        Self { config, line: Vec::new(), control: Vec::new(), state: QueueState::Healthy }
    }

    fn is_full(&self) -> bool {
        self.line.len() >= self.config.primary_size + self.config.overflow_size
    }

    fn drop_oldest(&mut self, class: Class) -> Option<Message> {
        let at = self.line.iter().position(|message| message.class == class)?;
        Some(self.line.remove(at))
    }

    /// The dropped message, or the reason of the refusal.
    fn put(&mut self, message: Message) -> Result<Option<Message>, RefusedReason> {
        let class = message.class;
        if class == Class::Control {
            if self.control.len() >= self.config.control_size {
                return Err(RefusedReason::ControlLaneFull);
            }
            self.control.push(message);
            return Ok(None);
        }
        let mut dropped = None;
        if self.is_full() {
            dropped = match class {
                Class::Dispatch => return Err(RefusedReason::QueueFull),
                Class::Data => {
                    self.drop_oldest(Class::Telemetry).or_else(|| self.drop_oldest(Class::Data))
                }
                _ => self.drop_oldest(Class::Telemetry),
            };
            if dropped.is_none() {
                return Err(RefusedReason::NothingToDrop);
            }
        }
        self.line.push(message);
        self.settle();
        Ok(dropped)
    }

    fn put_back(&mut self, message: Message) -> Result<Option<Message>, RefusedReason> {
        let class = message.class;
        if class == Class::Control {
            if self.control.len() >= self.config.control_size {
                return Err(RefusedReason::ControlLaneFull);
            }
            self.control.insert(0, message);
            return Ok(None);
        }
        let mut dropped = None;
        if self.is_full() {
            dropped = match class {
                Class::Dispatch => {
                    self.drop_oldest(Class::Telemetry).or_else(|| self.drop_oldest(Class::Data))
                }
                Class::Data => self.drop_oldest(Class::Telemetry),
                _ => None,
            };
            if dropped.is_none() {
                return Err(RefusedReason::NewerFilledQueue);
            }
        }
        self.line.insert(0, message);
        self.settle();
        Ok(dropped)
    }

    fn get(&mut self) -> Option<Message> {
        let lane = if self.control.is_empty() { &mut self.line } else { &mut self.control };
        let message = (!lane.is_empty()).then(|| lane.remove(0));
        self.settle();
        message
    }

    /// The states from the shares themselves, where the queue has whole numbers.
    fn settle(&mut self) {
        let config = &self.config;
        let length = self.line.len();
        let primary = length.min(config.primary_size) as f64 / config.primary_size as f64;
        let behind = length.saturating_sub(config.primary_size);
        let overflow = match config.overflow_size {
            0 => primary,
            size => behind as f64 / size as f64,
        };
        let rises = [
            (QueueState::Saturated, overflow, 1.0),
            (QueueState::Overflow, primary, config.overflow_fill),
            (QueueState::Batching, primary, config.batch_fill),
            (QueueState::Throttled, primary, config.throttle_fill),
        ];
        let before = self.state;
        let holds = |(state, fill, at): &(QueueState, f64, f64)| {
            let held = if *state <= before { config.hysteresis } else { 0.0 };
            *fill >= at - held - 1e-9
        };
        self.state =
            rises.iter().find(|rise| holds(rise)).map_or(QueueState::Healthy, |rise| rise.0);
    }
}

fn config() -> impl Strategy<Value = QueueConfig> {
    (1..60usize, 0..20usize, 1..6usize).prop_map(|(primary_size, overflow_size, control_size)| {
        QueueConfig { primary_size, overflow_size, control_size, ..QueueConfig::default() }
    })
}

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![
        1 => Just(Class::Control),
        2 => Just(Class::Dispatch),
        4 => Just(Class::Data),
        4 => Just(Class::Telemetry),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    // More putting than taking, so that the bound is reached.
    prop_oneof![
        8 => class().prop_map(Step::Put),
        3 => Just(Step::Get),
        1 => (0..12usize).prop_map(Step::GetBatch),
        1 => (0..6usize).prop_map(Step::PutBack),
    ]
}

fn put(queue: &mut RobustQueue<Message>, model: &mut Model, tally: &mut Tally, message: Message) {
    match (queue.put(message.class.into(), message), model.put(message)) {
        (Ok(put), Ok(dropped)) => {
            assert_eq!(put.dropped, dropped);
            assert_eq!((put.state, put.level), (model.state, model.state.level()));
            assert_eq!(put.delay, model.config.delays.of(model.state));
            tally.accepted += 1;
            tally.dropped.extend(dropped);
        }
        (Err(refused), Err(reason)) => {
            assert_eq!((refused.value, refused.reason), (message, reason), "it comes back");
            tally.refused += 1;
        }
        (ours, model) => panic!("{message:?}: {ours:?}, but the model {model:?}"),
    }
}

fn put_back(queue: &mut RobustQueue<Message>, model: &mut Model, tally: &mut Tally) {
    let Some(message) = tally.taken.pop() else { return };
    match (queue.put_back(message.class.into(), message), model.put_back(message)) {
        (Ok(put), Ok(dropped)) => {
            assert_eq!(put.dropped, dropped);
            tally.put_back += 1;
            tally.dropped.extend(dropped);
        }
        (Err(refused), Err(reason)) => {
            assert_eq!((refused.value, refused.reason), (message, reason), "it comes back");
            tally.refused += 1;
            tally.taken.push(message);
        }
        (ours, model) => panic!("{message:?}: {ours:?}, but the model {model:?}"),
    }
}

fn assert_same(queue: &RobustQueue<Message>, model: &Model, tally: &Tally) {
    let stats = queue.stats();
    let config = &model.config;
    let in_line = stats.primary_size + stats.overflow_size;
    assert_eq!((in_line, stats.control_size), (model.line.len(), model.control.len()));
    assert!(stats.primary_size <= config.primary_size, "bounds hold");
    assert!(stats.overflow_size <= config.overflow_size, "bounds hold");
    assert!(stats.control_size <= config.control_size, "bounds hold");
    assert!(stats.overflow_size == 0 || stats.primary_size == config.primary_size);
    assert_eq!(stats.state, model.state);
    assert_eq!(stats.total_enqueued, tally.accepted);
    assert_eq!(stats.total_put_back, tally.put_back);
    assert_eq!(stats.total_dropped, tally.dropped.len() as u64);
    assert_eq!(stats.total_refused, tally.refused);
    let there = queue.len() as u64;
    // What the caller holds now was taken and not put back; all else was dropped or is still there.
    assert_eq!(tally.accepted, tally.taken.len() as u64 + tally.dropped.len() as u64 + there);
}

/// A queue that was driven by these steps, with all that left it.
fn drive(config: QueueConfig, steps: &[Step]) -> (RobustQueue<Message>, Tally) {
    let mut queue = RobustQueue::new(config).expect("the sizes are within range");
    let (mut model, mut tally) = (Model::new(config), Tally::default());
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Put(class) => {
                let message = Message { number: number as u64, class };
                put(&mut queue, &mut model, &mut tally, message);
            }
            Step::Get => {
                let message = queue.get();
                assert_eq!(message, model.get());
                tally.taken.extend(message);
            }
            Step::GetBatch(max) => {
                let mut batch = Vec::new();
                assert_eq!(queue.get_batch(max, &mut batch), batch.len());
                let expected: Vec<_> = std::iter::from_fn(|| model.get()).take(max).collect();
                assert_eq!(batch, expected);
                tally.taken.extend(batch);
            }
            Step::PutBack(count) => {
                for _ in 0..count {
                    put_back(&mut queue, &mut model, &mut tally);
                }
            }
        }
        assert_same(&queue, &model, &tally);
    }
    (queue, tally)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_step_is_what_the_plain_list_does(
        config in config(),
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let (mut queue, mut tally) = drive(config, &steps);
        tally.taken.extend(std::iter::from_fn(|| queue.get()));
        prop_assert_eq!(queue.state(), QueueState::Healthy, "empty is healthy: no latch");
        let everywhere: BTreeSet<_> = tally.taken.iter().chain(&tally.dropped).collect();
        prop_assert_eq!(everywhere.len() as u64, tally.accepted, "each is in one place only");
        prop_assert!(tally.dropped.iter().all(|message| {
            matches!(message.class, Class::Data | Class::Telemetry)
        }), "what was accepted as dispatch or control is never dropped");
    }

    /// Without putting back, what leaves is in the order in which it came.
    #[test]
    fn what_is_delivered_is_first_in_first_out(
        config in config(),
        steps in prop::collection::vec(step(), 1..400),
    ) {
        let steps: Vec<_> =
            steps.into_iter().filter(|step| !matches!(step, Step::PutBack(_))).collect();
        let (mut queue, mut tally) = drive(config, &steps);
        tally.taken.extend(std::iter::from_fn(|| queue.get()));
        let of_control = |message: &Message| message.class == Class::Control;
        let (control, line): (Vec<_>, Vec<_>) = tally.taken.into_iter().partition(of_control);
        prop_assert!(control.is_sorted());
        prop_assert!(line.is_sorted_by_key(|message| message.number));
    }

    /// Of one class that was put and never taken, the newest are there.
    #[test]
    fn the_newest_are_preserved(
        config in config(), count in 1..200u64, telemetry in any::<bool>(),
    ) {
        let class = if telemetry { Class::Telemetry } else { Class::Data };
        let steps: Vec<_> = (0..count).map(|_| Step::Put(class)).collect();
        let (mut queue, tally) = drive(config, &steps);
        let left: Vec<_> = std::iter::from_fn(|| queue.get()).map(|left| left.number).collect();
        let bound = config.bound() as u64;
        let newest: Vec<_> = (count.saturating_sub(bound)..count).collect();
        prop_assert_eq!(left, newest);
        prop_assert_eq!(tally.dropped.len() as u64, count.saturating_sub(bound));
    }

    /// A longer line is never in a lower state, if nothing else differs.
    #[test]
    fn states_rise_with_the_line(config in config()) {
        let mut queue = RobustQueue::new(config).expect("the sizes are within range");
        let mut before = queue.state();
        for number in 0..config.bound() {
            let put = queue.put(Data, number).expect("there is room");
            prop_assert!(put.state >= before);
            before = put.state;
        }
        prop_assert_eq!(before, QueueState::Saturated);
        while queue.get().is_some() {
            prop_assert!(queue.state() <= before);
            before = queue.state();
        }
        prop_assert_eq!(before, QueueState::Healthy);
    }

    /// A line whose length stays within five points of the primary changes its state once at the most.
    #[test]
    fn nothing_flaps_within_five_points(
        start in 0..500usize,
        walk in prop::collection::vec(0..=25usize, 1..300),
    ) {
        let mut queue = RobustQueue::new(QueueConfig::default()).expect("the defaults are valid");
        let mut states = Vec::new();
        for offset in walk {
            while queue.len() < start + offset {
                let _ = queue.put(Data, 0).expect("there is room");
            }
            while queue.len() > start + offset {
                queue.get();
            }
            states.push(queue.state());
        }
        // The first visit to the walk's top may still raise it; from there on it stays.
        states.dedup();
        prop_assert!(states.len() <= 2 && states.is_sorted(), "{states:?}");
    }
}
