//! A store that can't be wrong, because it is too slow to be anything else; and histories to hold others against.

use crate::place::Place;
use crate::samples::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use tidegate::task::{TaskEvent, TaskOutcome, TaskStatus};
use tidegate::tasks::{
    Change, ChangeOutcome, Durability, NewTask, Submission, TaskRecord, TaskStore,
};

/// How many histories, each on what the one before left.
const HISTORIES: usize = 12;

#[derive(Clone, Debug)]
enum Step {
    Submit {
        name: u8,
        key: Option<u8>,
        code: u8,
    },
    /// An event, on a state that is so many versions off.
    Keep {
        name: u8,
        event: u8,
        off: u64,
        durability: Durability,
    },
    Forget {
        back_ms: u64,
        limit: usize,
    },
    Reopen,
    Adopt {
        limit: usize,
    },
}

/// Every task in the order of submission, with the life of the store that it belongs to.
#[derive(Default)]
struct Model {
    tasks: Vec<(NewTask, u32)>,
    life: u32,
    now_ms: u64,
}

fn any_step() -> impl Strategy<Value = Step> {
    let durability = prop::sample::select(vec![Durability::Process, Durability::Power]);
    prop_oneof![
        4 => (0_u8..5, prop::option::of(0_u8..3), 0_u8..2)
            .prop_map(|(name, key, code)| Step::Submit { name, key, code }),
        8 => (0_u8..5, 0_u8..6, prop_oneof![4 => Just(0_u64), 1 => 1_u64..3], durability).prop_map(
            |(name, event, off, durability)| Step::Keep { name, event, off, durability }
        ),
        1 => (0_u64..20, 1_usize..4).prop_map(|(back_ms, limit)| Step::Forget { back_ms, limit }),
        1 => Just(Step::Reopen),
        2 => (1_usize..4).prop_map(|limit| Step::Adopt { limit }),
    ]
}

fn event(number: u8, attempt: u32) -> TaskEvent {
    match number {
        0 => dispatching(),
        1 => accepted(attempt),
        2 => TaskEvent::Running { attempt },
        3 => ended(attempt, TaskOutcome::Succeeded),
        4 => ended(attempt, TaskOutcome::Failed),
        _ => TaskEvent::Lost { attempt },
    }
}

impl Model {
    fn find(&mut self, name: &str) -> Option<&mut TaskRecord> {
        let found = self.tasks.iter_mut().find(|(task, _)| task.record.id.as_str() == name);
        found.map(|(task, _)| &mut task.record)
    }

    fn submit(&mut self, new: NewTask) -> Submission {
        let same = |task: &NewTask| task.fingerprint == new.fingerprint;
        let by_id = self.tasks.iter().find(|(task, _)| task.record.id == new.record.id);
        let by_key = self.tasks.iter().find(|(task, _)| task.key.is_some() && task.key == new.key);
        match (by_id, by_key) {
            (Some((task, _)), _) | (None, Some((task, _))) if same(task) => {
                Submission::Same(task.record.clone())
            }
            (Some(_), _) => Submission::OtherUnderId(new.record.id),
            (None, Some((task, _))) => Submission::OtherUnderKey(task.record.id.clone()),
            (None, None) => {
                self.tasks.push((new, self.life));
                Submission::New
            }
        }
    }

    fn persist(&mut self, change: &Change) -> ChangeOutcome {
        let Some(task) = self.find(change.id.as_str()) else {
            return ChangeOutcome::Conflict(None);
        };
        if task.state.version + 1 != change.state.version || task.state.status.is_over() {
            return ChangeOutcome::Conflict(Some(task.state.clone()));
        }
        task.state = change.state.clone();
        ChangeOutcome::Yes
    }

    fn adopt(&mut self, limit: usize) -> Vec<TaskRecord> {
        let life = self.life;
        let theirs = self
            .tasks
            .iter_mut()
            .filter(|(task, of)| *of != life && !task.record.state.status.is_over());
        let adopted = TaskEvent::Adopted { owner: OWNER.into() };
        let adopt = |(task, of): &mut (NewTask, u32)| {
            *of = life;
            task.record = after(&task.record, &adopted, 0);
            task.record.clone()
        };
        theirs.take(limit).map(adopt).collect()
    }

    fn forget(&mut self, before_ms: u64, limit: usize) -> u64 {
        let ended = |task: &NewTask| {
            task.record.state.ended_ms.filter(|_| task.record.state.status.is_over())
        };
        let mut gone: Vec<_> = self.tasks.iter().filter_map(|(task, _)| ended(task)).collect();
        gone.retain(|ended_ms| *ended_ms < before_ms);
        gone.sort_unstable();
        gone.truncate(limit);
        let count = self.tasks.len();
        self.tasks.retain(|(task, _)| ended(task).is_none_or(|at_ms| !gone.contains(&at_ms)));
        (count - self.tasks.len()) as u64
    }

    fn counts(&self) -> [u64; 6] {
        TaskStatus::ALL.map(|status| self.names(Some(status)).len() as u64)
    }

    fn names(&self, status: Option<TaskStatus>) -> Vec<String> {
        let fits = |task: &&NewTask| status.is_none_or(|status| task.record.state.status == status);
        let newest = self.tasks.iter().rev().map(|(task, _)| task);
        newest.filter(fits).map(|task| task.record.id.to_string()).collect()
    }
}

pub async fn compare(place: &Place) {
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(any_step(), 10..60);
    let (mut store, mut model) = (place.open().await, Model::default());
    for _ in 0..HISTORIES {
        let history = steps.new_tree(&mut runner).unwrap().current();
        for (number, step) in history.iter().enumerate() {
            model.now_ms += 1;
            if matches!(step, Step::Reopen) {
                store = place.reopen(store).await;
                model.life += 1;
            } else {
                take(&store, &mut model, step, &format!("step {number} of {history:?}")).await;
            }
        }
        for (task, _) in &model.tasks {
            let record = &task.record;
            assert_eq!(store.get(&record.id).await.unwrap().as_ref(), Some(record));
            let output = store.output(&record.id).await.unwrap();
            assert_eq!(output.is_some(), record.state.status.is_over(), "{record:?}");
        }
        for status in std::iter::once(None).chain(TaskStatus::ALL.map(Some)) {
            assert_eq!(names(&store, status, 2).await, model.names(status), "{history:?}");
        }
    }
}

async fn take(store: &impl TaskStore, model: &mut Model, step: &Step, what: &str) {
    match step {
        Step::Submit { name, key, code } => {
            let mut new = task(&format!("t{name}"), &format!("code {code}"), model.now_ms);
            new.key = key.map(|key| format!("key {key}").into());
            assert_eq!(store.submit(new.clone()).await.unwrap(), model.submit(new), "{what}");
        }
        Step::Keep { name, event: number, off, durability } => {
            let now_ms = model.now_ms;
            let known = model.find(&format!("t{name}")).cloned();
            let known = known.unwrap_or_else(|| task(&format!("t{name}"), "none", 1).record);
            let happened = event(*number, known.state.attempt);
            let mut state = known.state.clone();
            match state.after(&happened, &known.spec, now_ms) {
                Ok(next) => state = next,
                Err(_) => state.version += 1,
            }
            state.version += off;
            let output = state.status.is_over().then(chunks);
            let change = Change { id: known.id, state, output };
            let expected = model.persist(&change);
            assert_eq!(store.persist(change, *durability).await.unwrap(), expected, "{what}");
        }
        Step::Forget { back_ms, limit } => {
            let before_ms = model.now_ms.saturating_sub(*back_ms);
            let gone = store.forget(before_ms, *limit).await.unwrap();
            assert_eq!(gone, model.forget(before_ms, *limit), "{what}");
        }
        Step::Adopt { limit } => {
            assert_eq!(
                store.adopt(OWNER, *limit, true).await.unwrap(),
                model.adopt(*limit),
                "{what}"
            );
        }
        Step::Reopen => {}
    }
    assert_eq!(store.counts().await.unwrap(), model.counts(), "{what}");
}
