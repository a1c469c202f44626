use super::{EndReason, Ending, TaskOutcome, TaskSpec, TaskState, TaskStatus};
use std::fmt;

/// Lost executors after which a task is given up. A task that crashes its executor each time must not take down
/// the whole fleet.
const LOSSES_MAX: u32 = 10;
/// First pause after a failure; it doubles with each.
const RETRY_MS_FIRST: u64 = 500;
/// Longest pause.
const RETRY_MS_MAX: u64 = 60_000;

/// Event of a task. All but the first and the last two name their attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEvent {
    /// The next attempt is about to be sent to this executor. Persist this before sending: it records which
    /// executor may have started the task.
    Dispatching {
        /// Name of the executor.
        executor: Box<str>,
    },
    /// The executor did not accept the attempt: it is full or unreachable.
    Refused {
        /// Number of the attempt.
        attempt: u32,
    },
    /// The executor has accepted the attempt.
    Accepted {
        /// Number of the attempt.
        attempt: u32,
        /// Fence given by the executor.
        fence: u64,
    },
    /// The attempt was observed running.
    Running {
        /// Number of the attempt.
        attempt: u32,
    },
    /// The attempt ended.
    Ended {
        /// Number of the attempt.
        attempt: u32,
        /// Its ending.
        ending: Ending,
    },
    /// The outcome of the attempt is unknown, and later reports about it will be ignored.
    Lost {
        /// Number of the attempt.
        attempt: u32,
    },
    /// Cancellation was requested.
    CancelRequested,
    /// Another manager owns the task from now on.
    Adopted {
        /// Name of the manager.
        owner: Box<str>,
    },
}

/// Error for an event that no longer concerns the task. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleEvent {
    /// Status of the task.
    pub status: TaskStatus,
    /// Its last attempt.
    pub attempt: u32,
}

// === impl TaskState ===

impl TaskState {
    /// Returns the state after an event.
    ///
    /// # Errors
    ///
    /// [`StaleEvent`] if the event concerns another attempt than the last, or a task that has ended. This prevents
    /// a stale attempt from ending a task twice.
    pub fn after(
        &self,
        event: &TaskEvent,
        spec: &TaskSpec,
        now_ms: u64,
    ) -> Result<Self, StaleEvent> {
        let stale = StaleEvent { status: self.status, attempt: self.attempt };
        if self.status.is_over() {
            return Err(stale);
        }
        let mut next = self.clone();
        next.version += 1;
        match event {
            TaskEvent::Dispatching { executor } => {
                if self.status != TaskStatus::Queued
                    || self.assignment.is_some()
                    || self.cancel_requested
                {
                    return Err(stale);
                }
                next.assign(executor.clone());
            }
            TaskEvent::Refused { attempt } => {
                if self.status != TaskStatus::Queued || !self.is_at(*attempt) {
                    return Err(stale);
                }
                next.assignment = None;
                next.skipped += 1;
                next.end_if_cancelled(now_ms);
            }
            TaskEvent::Accepted { attempt, fence } => {
                let assignment =
                    next.assignment.as_mut().filter(|_| self.is_at(*attempt)).ok_or(stale)?;
                if self.status != TaskStatus::Queued {
                    return Err(stale);
                }
                assignment.fence = Some(*fence);
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
            TaskEvent::CancelRequested => {
                next.cancel_requested = true;
                next.end_if_cancelled(now_ms);
            }
            TaskEvent::Adopted { owner } => next.owner = owner.clone(),
        }
        Ok(next)
    }

    fn is_at(&self, attempt: u32) -> bool {
        self.assignment.is_some() && self.attempt == attempt
    }

    /// Ends a cancelled task at once if no executor has it.
    fn end_if_cancelled(&mut self, now_ms: u64) {
        if self.cancel_requested && self.assignment.is_none() {
            self.end(Ending::new(TaskOutcome::Cancelled, EndReason::Cancelled), now_ms);
        }
    }

    fn end(&mut self, ending: Ending, now_ms: u64) {
        self.status = match ending.outcome {
            TaskOutcome::Succeeded => TaskStatus::Succeeded,
            TaskOutcome::Failed => TaskStatus::Failed,
            TaskOutcome::Cancelled => TaskStatus::Cancelled,
        };
        self.ending = Some(ending);
        self.ended_ms = Some(now_ms);
        self.not_before_ms = None;
    }

    fn end_attempt(&mut self, ending: &Ending, spec: &TaskSpec, now_ms: u64) {
        // A requested cancellation is reported as such, unless the task succeeded before the request reached it.
        let cancelled = self.cancel_requested && ending.outcome != TaskOutcome::Succeeded;
        if cancelled {
            return self.end(Ending { outcome: TaskOutcome::Cancelled, ..ending.clone() }, now_ms);
        }
        // An executor cancels nothing by itself: the lease expired, or the executor shuts down.
        if ending.outcome == TaskOutcome::Cancelled {
            self.ending = Some(ending.clone());
            return self.lose(now_ms);
        }
        if ending.outcome == TaskOutcome::Failed {
            self.failures += 1;
            if self.failures <= spec.retries && ending.reason != EndReason::Refused {
                let doubled = RETRY_MS_FIRST << (self.failures - 1).min(7);
                self.requeue(now_ms, doubled.min(RETRY_MS_MAX));
                self.ending = Some(ending.clone());
                return;
            }
        }
        self.end(ending.clone(), now_ms);
    }

    fn lose(&mut self, now_ms: u64) {
        self.losses += 1;
        self.assignment = None;
        if self.cancel_requested {
            return self.end_if_cancelled(now_ms);
        }
        if self.losses >= LOSSES_MAX {
            let message = format!("{} attempts were lost with their executors", self.losses);
            let ending = Ending::new(TaskOutcome::Failed, EndReason::ExecutorLost).because(message);
            return self.end(ending, now_ms);
        }
        // The first loss is rarely caused by the task; from the second on the pause grows.
        let pause_ms = match self.losses {
            1 => 0,
            losses => (RETRY_MS_FIRST << (losses - 2)).min(RETRY_MS_MAX),
        };
        self.requeue(now_ms, pause_ms);
    }

    fn requeue(&mut self, now_ms: u64, pause_ms: u64) {
        self.status = TaskStatus::Queued;
        self.assignment = None;
        self.started_ms = None;
        self.queued_ms = now_ms;
        self.not_before_ms = (pause_ms > 0).then_some(now_ms + pause_ms);
    }
}

// === impl StaleEvent ===

impl fmt::Display for StaleEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the task is {} in attempt {}", self.status, self.attempt)
    }
}

impl std::error::Error for StaleEvent {}

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

    fn ended(attempt: u32, outcome: TaskOutcome) -> TaskEvent {
        TaskEvent::Ended { attempt, ending: Ending::new(outcome, EndReason::Exit) }
    }

    fn dispatching() -> TaskEvent {
        TaskEvent::Dispatching { executor: "e".into() }
    }

    fn run(events: &[TaskEvent], retries: u32) -> Result<TaskState, StaleEvent> {
        let start = TaskState::submitted("m", 1);
        events.iter().try_fold(start, |state, event| state.after(event, &spec(retries), 1_000))
    }

    #[test]
    fn provisioning_comes_with_an_acceptance_and_not_before() {
        let state = run(&[dispatching()], 0).unwrap();
        assert_eq!((state.status, state.attempt), (TaskStatus::Queued, 1));
        let state = run(&[dispatching(), TaskEvent::Accepted { attempt: 1, fence: 9 }], 0).unwrap();
        assert_eq!(state.status, TaskStatus::Provisioning);
        assert_eq!(state.assignment.unwrap().fence, Some(9));
        assert!(run(&[TaskEvent::Accepted { attempt: 1, fence: 9 }], 0).is_err());
        assert!(run(&[dispatching(), TaskEvent::Running { attempt: 1 }], 0).is_err());
    }

    #[test]
    fn a_zombie_of_an_earlier_attempt_changes_nothing() {
        let lost = [dispatching(), TaskEvent::Lost { attempt: 1 }, dispatching()];
        let state = run(&lost, 0).unwrap();
        assert_eq!((state.attempt, state.losses), (2, 1));
        for zombie in
            [ended(1, TaskOutcome::Succeeded), TaskEvent::Accepted { attempt: 1, fence: 3 }]
        {
            assert!(state.after(&zombie, &spec(0), 5).is_err());
        }
        let done = state.after(&ended(2, TaskOutcome::Succeeded), &spec(0), 5).unwrap();
        assert_eq!(done.status, TaskStatus::Succeeded);
        assert!(
            done.after(&ended(2, TaskOutcome::Succeeded), &spec(0), 6).is_err(),
            "it ends once"
        );
    }

    #[test]
    fn failures_are_repeated_as_often_as_asked_and_later_each_time() {
        let state = run(&[dispatching(), ended(1, TaskOutcome::Failed)], 2).unwrap();
        assert_eq!((state.status, state.not_before_ms), (TaskStatus::Queued, Some(1_500)));
        let two = [
            dispatching(),
            ended(1, TaskOutcome::Failed),
            dispatching(),
            ended(2, TaskOutcome::Failed),
        ];
        assert_eq!(run(&two, 2).unwrap().not_before_ms, Some(2_000));
        assert_eq!(run(&two, 1).unwrap().status, TaskStatus::Failed);
        assert_eq!(run(&two[..2], 0).unwrap().status, TaskStatus::Failed);
    }

    #[test]
    fn a_task_that_loses_every_executor_is_given_up() {
        let mut events = Vec::new();
        for attempt in 1..=LOSSES_MAX {
            events.extend([dispatching(), TaskEvent::Lost { attempt }]);
        }
        let state = run(&events, 100).unwrap();
        assert_eq!(state.status, TaskStatus::Failed);
        assert_eq!(state.ending.unwrap().reason, EndReason::ExecutorLost);
    }

    #[test]
    fn cancelling_ends_what_waits_at_once_and_what_runs_when_it_stops() {
        let state = run(&[TaskEvent::CancelRequested], 0).unwrap();
        assert_eq!(state.status, TaskStatus::Cancelled);
        let running = run(&[dispatching(), TaskEvent::CancelRequested], 5).unwrap();
        assert_eq!(running.status, TaskStatus::Queued, "it may have been started");
        for (event, status) in [
            (TaskEvent::Refused { attempt: 1 }, TaskStatus::Cancelled),
            (TaskEvent::Lost { attempt: 1 }, TaskStatus::Cancelled),
            (ended(1, TaskOutcome::Failed), TaskStatus::Cancelled),
            (ended(1, TaskOutcome::Cancelled), TaskStatus::Cancelled),
            (ended(1, TaskOutcome::Succeeded), TaskStatus::Succeeded),
        ] {
            assert_eq!(running.after(&event, &spec(5), 9).unwrap().status, status, "{event:?}");
        }
    }

    #[test]
    fn an_attempt_that_no_executor_accepted_has_a_number_and_is_not_counted() {
        let refused = [dispatching(), TaskEvent::Refused { attempt: 1 }, dispatching()];
        let state = run(&refused, 0).unwrap();
        assert_eq!((state.attempt, state.skipped), (2, 1));
        let lost = run(&[dispatching(), TaskEvent::Lost { attempt: 1 }], 0).unwrap();
        assert_eq!((lost.attempt, lost.skipped), (1, 0), "it may have run");
    }

    #[test]
    fn what_an_executor_stopped_by_itself_is_a_loss_and_not_an_end() {
        let state = run(&[dispatching(), ended(1, TaskOutcome::Cancelled)], 0).unwrap();
        assert_eq!((state.status, state.losses), (TaskStatus::Queued, 1));
    }
}
