//! Random sequences of asking and finishing, compared step by step with a plain model under a lock.

// The model is a lock over four numbers, which is what the tracker must behave like and may not be.
#![allow(clippy::disallowed_types)]

use proptest::prelude::*;
use std::sync::Mutex;
use tidegate_core::admission::MessagePriority::{Critical, High, Low, Normal};
use tidegate_core::admission::{
    InFlightTracker, LoadState, MessagePriority, Outcome, PriorityLimits, Reason, Sharing,
};

/// Reference model of the rules in their documented order, without optimisation.
struct Model {
    limits: PriorityLimits,
    sharing: Sharing,
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    critical: usize,
    high: usize,
    normal: usize,
    low: usize,
}

#[derive(Clone, Debug)]
enum Step {
    Ask(MessagePriority),
    /// Ends one of the held permits: which one, as a position in what is held at that time.
    Finish(prop::sample::Index, Outcome),
}

/// Counts of the test itself, by priority.
#[derive(Default)]
struct Tally {
    acquired: [u64; 4],
    shed: [[u64; 2]; 4],
    finished: [[u64; 3]; 4],
}

// === impl Model ===

impl Model {
    fn try_acquire(&self, priority: MessagePriority) -> Result<(), Reason> {
        let mut counts = self.counts.lock().expect("no step panics");
        self.decide(&counts, priority)?;
        *counts.of(priority) += 1;
        Ok(())
    }

    fn release(&self, priority: MessagePriority) {
        *self.counts.lock().expect("no step panics").of(priority) -= 1;
    }

    fn decide(&self, counts: &Counts, priority: MessagePriority) -> Result<(), Reason> {
        if priority == Critical {
            return Ok(());
        }
        let counted_critical = counts.critical.min(usize::from(self.limits.critical_reserve));
        let total = counted_critical + counts.high + counts.normal + counts.low;
        if total + self.left_above(counts, priority) >= usize::from(self.limits.global_limit) {
            return Err(Reason::GlobalLimit);
        }
        let (count, limit) = match priority {
            Critical => unreachable!("answered above"),
            High => (counts.high, self.limits.high),
            Normal => (counts.normal, self.limits.normal),
            Low => (counts.low, self.limits.low),
        };
        // A limit of 0 is no limit.
        let at_limit = limit > 0 && count >= usize::from(limit);
        if at_limit && !self.may_borrow(counts, priority) {
            return Err(Reason::PriorityLimit);
        }
        Ok(())
    }

    /// A twentieth of the global limit is left to each priority above, but no more than that one could still use.
    fn left_above(&self, counts: &Counts, priority: MessagePriority) -> usize {
        let global = usize::from(self.limits.global_limit);
        let left = |limit: u16, count: usize, borrows: bool| {
            let most = if limit == 0 || borrows { global } else { usize::from(limit).min(global) };
            most.saturating_sub(count).min(global / 20)
        };
        let high = left(self.limits.high, counts.high, self.sharing == Sharing::Borrow);
        match priority {
            Critical | High => 0,
            Normal => high,
            Low => high + left(self.limits.normal, counts.normal, false),
        }
    }

    fn may_borrow(&self, counts: &Counts, priority: MessagePriority) -> bool {
        match (self.sharing, priority) {
            (Sharing::Strict, _) | (Sharing::Borrow, Low) => false,
            (Sharing::Borrow, Critical | High) => true,
            (Sharing::Borrow, Normal) => {
                let high_places = match self.limits.high {
                    0 => self.limits.global_limit,
                    own => own.min(self.limits.global_limit),
                };
                // Borrowed places are used places of High; nine tenths of them used is pressure.
                let borrowed = counts.normal - usize::from(self.limits.normal);
                let high_pressed = (counts.high + borrowed) * 10 >= usize::from(high_places) * 9;
                // Without a reserve any Critical at all is pressure.
                let critical_pressed = counts.critical > 0
                    && counts.critical >= usize::from(self.limits.critical_reserve);
                !high_pressed && !critical_pressed
            }
        }
    }

    fn load_state(&self) -> LoadState {
        let counts = self.counts.lock().expect("no step panics");
        if self.decide(&counts, Normal).is_err() {
            LoadState::Overloaded
        } else if self.decide(&counts, Low).is_err() {
            LoadState::Pressured
        } else {
            LoadState::Healthy
        }
    }
}

// === impl Counts ===

impl Counts {
    fn of(&mut self, priority: MessagePriority) -> &mut usize {
        match priority {
            Critical => &mut self.critical,
            High => &mut self.high,
            Normal => &mut self.normal,
            Low => &mut self.low,
        }
    }
}

fn limits() -> impl Strategy<Value = PriorityLimits> {
    (0..40u16, 0..20u16, 0..20u16, 0..20u16, 0..12u16).prop_map(
        |(global_limit, high, normal, low, critical_reserve)| PriorityLimits {
            high,
            normal,
            low,
            global_limit,
            critical_reserve,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    // More asking than finishing, so that limits are reached.
    prop_oneof![
        3 => prop::sample::select(MessagePriority::ALL.to_vec()).prop_map(Step::Ask),
        2 => (any::<prop::sample::Index>(), prop::sample::select(Outcome::ALL.to_vec()))
            .prop_map(|(which, outcome)| Step::Finish(which, outcome)),
    ]
}

fn assert_same(tracker: &InFlightTracker, model: &Model, tally: &Tally) {
    let stats = tracker.stats();
    let mut counts = *model.counts.lock().expect("no step panics");
    for priority in MessagePriority::ALL {
        let lane = priority.index();
        assert_eq!(tracker.lanes().of(priority) as usize, *counts.of(priority), "{priority}");
        assert_eq!(stats.in_flight(priority) as usize, *counts.of(priority), "{priority}");
        assert_eq!(stats.acquired(priority), tally.acquired[lane], "{priority}");
        assert_eq!(stats.shed(priority), tally.shed[lane].iter().sum::<u64>(), "{priority}");
        assert_eq!(
            Reason::ALL.map(|reason| stats.shed_by_reason[lane].of(reason)),
            tally.shed[lane]
        );
        assert_eq!(
            Outcome::ALL.map(|outcome| stats.finished[lane].of(outcome)),
            tally.finished[lane]
        );
    }
    assert_eq!(tracker.load_state(), model.load_state());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_step_is_what_the_plain_model_does(
        limits in limits(),
        borrow in any::<bool>(),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let sharing = if borrow { Sharing::Borrow } else { Sharing::Strict };
        let tracker = InFlightTracker::new(limits, sharing);
        let model = Model { limits, sharing, counts: Mutex::default() };
        let mut tally = Tally::default();
        let mut held = Vec::new();
        for step in steps {
            match step {
                Step::Ask(priority) => {
                    let ours = tracker.try_acquire(priority);
                    let lane = priority.index();
                    match (ours, model.try_acquire(priority)) {
                        (Ok(permit), Ok(())) => {
                            tally.acquired[lane] += 1;
                            held.push(permit);
                        }
                        (Err(refusal), Err(reason)) => {
                            prop_assert_eq!((refusal.priority, refusal.reason), (priority, reason));
                            tally.shed[lane][reason.index()] += 1;
                        }
                        (ours, model) => panic!("{priority}: {ours:?}, but the model {model:?}"),
                    }
                }
                Step::Finish(which, outcome) if !held.is_empty() => {
                    let permit = held.swap_remove(which.index(held.len()));
                    let priority = permit.priority();
                    permit.finish(outcome);
                    model.release(priority);
                    tally.finished[priority.index()][outcome.index()] += 1;
                }
                Step::Finish(..) => {}
            }
            assert_same(&tracker, &model, &tally);
        }
        drop(held);
        prop_assert_eq!(tracker.stats().total_in_flight, 0);
        prop_assert_eq!(tracker.stats().critical_shed, 0);
    }
}
