use super::{EndReason, Ending, Outcome, Placed, TaskSpec, TaskState, TaskStatus};
use std::fmt;

/// Losses of executors after which a task is given up. A task that takes its executor down with it each time must
/// not take the fleet down, one executor after the other.
const LOSSES_MAX: u32 = 10;
/// The first pause after a failure; it doubles with each.
const RETRY_MS_FIRST: u64 = 500;
/// The longest pause.
const RETRY_MS_MAX: u64 = 60_000;

/// Something that happened to a task. All but the first and the last two name the attempt that they are about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEvent {
    /// Its next attempt is about to be sent to this executor. To be kept before it is sent: only so is it known
    /// afterwards who may have started it.
    Placing {
        /// The executor's name.
        executor: Box<str>,
    },
    /// The executor did not take it: it is full, or can't have heard of it.
    Refused {
        /// Of which attempt.
        attempt: u32,
    },
    /// The executor has accepted it.
    Accepted {
        /// Of which attempt.
        attempt: u32,
        /// What the executor gave it.
        fence: u64,
    },
    /// It has been seen to run.
    Running {
        /// Of which attempt.
        attempt: u32,
    },
    /// The attempt ended.
    Ended {
        /// Of which attempt.
        attempt: u32,
        /// How.
        ending: Ending,
    },
    /// Nobody knows what became of the attempt, and nobody will accept a word from it any more.
    Lost {
        /// Of which attempt.
        attempt: u32,
    },
    /// Somebody wants it to stop.
    CancelAsked,
    /// Another manager answers for it from now on.
    Adopted {
        /// Its name.
        owner: Box<str>,
    },
}

/// An event that is not, or no longer, about what the task is doing. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stale {
    /// What it is doing.
    pub status: TaskStatus,
    /// Its latest attempt.
    pub attempt: u32,
}

// === impl TaskState ===

impl TaskState {
    /// What the event makes of the task.
    ///
    /// # Errors
    ///
    /// [`Stale`] when the event is about another attempt than the latest, or about something that is over. That is
    /// how a zombie is kept from ending a task twice.
    pub fn after(&self, event: &TaskEvent, spec: &TaskSpec, now_ms: u64) -> Result<Self, Stale> {
        let stale = Stale { status: self.status, attempt: self.attempt };
        if self.status.is_over() {
            return Err(stale);
        }
        let mut next = self.clone();
        next.version += 1;
        match event {
            TaskEvent::Placing { executor } => {
                if self.status != TaskStatus::Queued || self.placed.is_some() || self.cancel_asked {
                    return Err(stale);
                }
                next.attempt += 1;
                next.not_before_ms = None;
                next.placed = Some(Placed { executor: executor.clone(), fence: None });
            }
            TaskEvent::Refused { attempt } => {
                if self.status != TaskStatus::Queued || !self.is_at(*attempt) {
                    return Err(stale);
                }
                next.placed = None;
                next.end_if_cancelled(now_ms);
            }
            TaskEvent::Accepted { attempt, fence } => {
                let placed = next.placed.as_mut().filter(|_| self.is_at(*attempt)).ok_or(stale)?;
                if self.status != TaskStatus::Queued {
                    return Err(stale);
                }
                placed.fence = Some(*fence);
                next.status = TaskStatus::Provisioning;
                next.started_ms = Some(now_ms);
                next.ending = None;
            }
            TaskEvent::Running { attempt } => {
                if self.status != TaskStatus::Provisioning || !self.is_at(*attempt) {
                    return Err(stale);
                }
                next.status = TaskStatus::Running;
            }
            TaskEvent::Ended { attempt, ending } => {
                if !self.is_at(*attempt) {
                    return Err(stale);
                }
                next.end_attempt(ending, spec, now_ms);
            }
            TaskEvent::Lost { attempt } => {
                if !self.is_at(*attempt) {
                    return Err(stale);
                }
                next.lose(now_ms);
            }
            TaskEvent::CancelAsked => {
                next.cancel_asked = true;
                next.end_if_cancelled(now_ms);
            }
            TaskEvent::Adopted { owner } => next.owner = owner.clone(),
        }
        Ok(next)
    }

    fn is_at(&self, attempt: u32) -> bool {
        self.placed.is_some() && self.attempt == attempt
    }

    /// What nobody runs ends at once when it is told to.
    fn end_if_cancelled(&mut self, now_ms: u64) {
        if self.cancel_asked && self.placed.is_none() {
            self.end(Ending::new(Outcome::Cancelled, EndReason::Cancelled), now_ms);
        }
    }

    fn end(&mut self, ending: Ending, now_ms: u64) {
        self.status = match ending.outcome {
            Outcome::Succeeded => TaskStatus::Succeeded,
            Outcome::Failed => TaskStatus::Failed,
            Outcome::Cancelled => TaskStatus::Cancelled,
        };
        self.ending = Some(ending);
        self.ended_ms = Some(now_ms);
        self.not_before_ms = None;
    }

    fn end_attempt(&mut self, ending: &Ending, spec: &TaskSpec, now_ms: u64) {
        // Whoever wanted it to stop is told that it did, unless it was done before it heard of that.
        let told = self.cancel_asked && ending.outcome != Outcome::Succeeded;
        if told {
            return self.end(Ending { outcome: Outcome::Cancelled, ..ending.clone() }, now_ms);
        }
        // Of itself an executor cancels nothing: its lease ran out, or it is going down.
        if ending.outcome == Outcome::Cancelled {
            self.ending = Some(ending.clone());
            return self.lose(now_ms);
        }
        if ending.outcome == Outcome::Failed {
            self.failures += 1;
            if self.failures <= spec.retries && ending.reason != EndReason::Refused {
                let doubled = RETRY_MS_FIRST << (self.failures - 1).min(7);
                self.wait_again(now_ms, doubled.min(RETRY_MS_MAX));
                self.ending = Some(ending.clone());
                return;
            }
        }
        self.end(ending.clone(), now_ms);
    }

    fn lose(&mut self, now_ms: u64) {
        self.losses += 1;
        self.placed = None;
        if self.cancel_asked {
            return self.end_if_cancelled(now_ms);
        }
        if self.losses >= LOSSES_MAX {
            let message = format!("{} attempts were lost with their executors", self.losses);
            let ending = Ending::new(Outcome::Failed, EndReason::ExecutorLost).because(message);
            return self.end(ending, now_ms);
        }
        // The first loss is hardly the task's doing; from the second on it is given less and less of a chance.
        let pause_ms = match self.losses {
            1 => 0,
            losses => (RETRY_MS_FIRST << (losses - 2)).min(RETRY_MS_MAX),
        };
        self.wait_again(now_ms, pause_ms);
    }

    fn wait_again(&mut self, now_ms: u64, pause_ms: u64) {
        self.status = TaskStatus::Queued;
        self.placed = None;
        self.started_ms = None;
        self.queued_ms = now_ms;
        self.not_before_ms = (pause_ms > 0).then_some(now_ms + pause_ms);
    }
}

// === impl Stale ===

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the task is {} in its attempt {}", self.status, self.attempt)
    }
}

impl std::error::Error for Stale {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::MessagePriority;
    use std::collections::BTreeMap;

    fn spec(retries: u32) -> TaskSpec {
        TaskSpec {
            runtime: "sh".to_owned(),
            code: "true".to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            priority: MessagePriority::Normal,
            timeout_ms: 1_000,
            retries,
        }
    }

    fn ended(attempt: u32, outcome: Outcome) -> TaskEvent {
        TaskEvent::Ended { attempt, ending: Ending::new(outcome, EndReason::Exit) }
    }

    fn placing() -> TaskEvent {
        TaskEvent::Placing { executor: "e".into() }
    }

    fn run(events: &[TaskEvent], retries: u32) -> Result<TaskState, Stale> {
        let start = TaskState::submitted("m", 1);
        events.iter().try_fold(start, |state, event| state.after(event, &spec(retries), 1_000))
    }

    #[test]
    fn provisioning_comes_with_an_acceptance_and_not_before() {
        let state = run(&[placing()], 0).unwrap();
        assert_eq!((state.status, state.attempt), (TaskStatus::Queued, 1));
        let state = run(&[placing(), TaskEvent::Accepted { attempt: 1, fence: 9 }], 0).unwrap();
        assert_eq!(state.status, TaskStatus::Provisioning);
        assert_eq!(state.placed.unwrap().fence, Some(9));
        assert!(run(&[TaskEvent::Accepted { attempt: 1, fence: 9 }], 0).is_err());
        assert!(run(&[placing(), TaskEvent::Running { attempt: 1 }], 0).is_err());
    }

    #[test]
    fn a_zombie_of_an_earlier_attempt_changes_nothing() {
        let lost = [placing(), TaskEvent::Lost { attempt: 1 }, placing()];
        let state = run(&lost, 0).unwrap();
        assert_eq!((state.attempt, state.losses), (2, 1));
        for zombie in [ended(1, Outcome::Succeeded), TaskEvent::Accepted { attempt: 1, fence: 3 }] {
            assert!(state.after(&zombie, &spec(0), 5).is_err());
        }
        let done = state.after(&ended(2, Outcome::Succeeded), &spec(0), 5).unwrap();
        assert_eq!(done.status, TaskStatus::Succeeded);
        assert!(done.after(&ended(2, Outcome::Succeeded), &spec(0), 6).is_err(), "it ends once");
    }

    #[test]
    fn failures_are_repeated_as_often_as_asked_and_later_each_time() {
        let state = run(&[placing(), ended(1, Outcome::Failed)], 2).unwrap();
        assert_eq!((state.status, state.not_before_ms), (TaskStatus::Queued, Some(1_500)));
        let two = [placing(), ended(1, Outcome::Failed), placing(), ended(2, Outcome::Failed)];
        assert_eq!(run(&two, 2).unwrap().not_before_ms, Some(2_000));
        assert_eq!(run(&two, 1).unwrap().status, TaskStatus::Failed);
        assert_eq!(run(&two[..2], 0).unwrap().status, TaskStatus::Failed);
    }

    #[test]
    fn a_task_that_loses_every_executor_is_given_up() {
        let mut events = Vec::new();
        for attempt in 1..=LOSSES_MAX {
            events.extend([placing(), TaskEvent::Lost { attempt }]);
        }
        let state = run(&events, 100).unwrap();
        assert_eq!(state.status, TaskStatus::Failed);
        assert_eq!(state.ending.unwrap().reason, EndReason::ExecutorLost);
    }

    #[test]
    fn cancelling_ends_what_waits_at_once_and_what_runs_when_it_stops() {
        let state = run(&[TaskEvent::CancelAsked], 0).unwrap();
        assert_eq!(state.status, TaskStatus::Cancelled);
        let running = run(&[placing(), TaskEvent::CancelAsked], 5).unwrap();
        assert_eq!(running.status, TaskStatus::Queued, "it may have been started");
        for (event, status) in [
            (TaskEvent::Refused { attempt: 1 }, TaskStatus::Cancelled),
            (TaskEvent::Lost { attempt: 1 }, TaskStatus::Cancelled),
            (ended(1, Outcome::Failed), TaskStatus::Cancelled),
            (ended(1, Outcome::Cancelled), TaskStatus::Cancelled),
            (ended(1, Outcome::Succeeded), TaskStatus::Succeeded),
        ] {
            assert_eq!(running.after(&event, &spec(5), 9).unwrap().status, status, "{event:?}");
        }
    }

    #[test]
    fn what_an_executor_stopped_by_itself_is_a_loss_and_not_an_end() {
        let state = run(&[placing(), ended(1, Outcome::Cancelled)], 0).unwrap();
        assert_eq!((state.status, state.losses), (TaskStatus::Queued, 1));
    }
}
