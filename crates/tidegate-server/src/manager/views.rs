use super::DeskError;
use super::actor::{Actor, Known};
use super::attempt::{millis, now_ms};
use super::command::Reply;
use super::event::Event;
use super::link::Link;
use super::view::{ExecutorList, ExecutorView, TaskList, TaskView};
use crate::worker::CapacityReport;
use std::sync::Arc;
use tidegate::capacity::ExecutorId;
use tidegate::ledger::Ledger;
use tidegate::store::StoreError;
use tidegate::task::TaskStatus;
use tidegate::tasks::{TaskPage, TaskQuery, TaskRecord, TaskStore};

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    /// A task with its place in the line.
    pub fn view(&self, record: &TaskRecord) -> TaskView {
        let mut view = TaskView::of(record);
        if record.state.status != TaskStatus::Queued {
            return view;
        }
        let Some(ticket) = self.book.ticket(&record.id) else { return view };
        if let Some(ahead) = self.dispatcher.ahead_of(ticket) {
            let (fleet, now) = (self.dispatcher.fleet(), self.now());
            let wait = self.estimate.wait(ahead, fleet.slots(), fleet.free(now));
            view.queue_position = Some(ahead);
            view.estimated_wait_ms = wait.map(millis);
        }
        view
    }

    /// Every executor with how full it is, and how many tasks there are. One in this process is looked at now;
    /// others are as they last said.
    pub fn tell_executors(&self, reply: Reply<ExecutorList>) {
        let executors = self.executor_views();
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let counts = store.counts().await;
            let answer = counts.map(|counts| ExecutorList {
                executors,
                tasks: TaskStatus::ALL.into_iter().zip(counts).collect(),
            });
            let _ = reply.send(answer.map_err(|error| DeskError::Store(error.to_string())));
        });
    }

    fn executor_views(&self) -> Vec<ExecutorView> {
        let views = self.executors.iter().enumerate().map(|(at, executor)| {
            if let Link::Local(here) = &*executor.link {
                let report = here.capacity();
                return executor_view(executor, Some(&report), report.running);
            }
            let report = executor.report.as_ref();
            // What was sent since the executor was last asked is not in its report.
            let id = u32::try_from(at).map(ExecutorId).ok();
            let belief = id.and_then(|id| self.dispatcher.fleet().get(id));
            let ours = belief.map_or(0, |belief| belief.ours);
            let running = report.map_or(0, |report| report.running).max(ours);
            executor_view(executor, report, running)
        });
        views.collect()
    }

    pub fn list(&self, query: TaskQuery, reply: Reply<TaskList>) {
        let (store, events) = (Arc::clone(&self.store), self.events.clone());
        tokio::spawn(async move {
            let page = store.list(&query).await;
            let _ = events.send(Event::Listed { page, status: query.status, reply }).await;
        });
    }

    /// Those that are not over are known better here than in the store.
    pub fn listed(
        &self,
        page: Result<TaskPage, StoreError>,
        status: Option<TaskStatus>,
        reply: Reply<TaskList>,
    ) {
        let answer = page.map(|page| {
            let views = page.tasks.iter().map(|record| {
                let live = self.book.ticket(&record.id).and_then(|ticket| self.book.get(ticket));
                self.view(live.map_or(record, |entry| &entry.record))
            });
            let wanted = views.filter(|view| status.is_none_or(|status| view.status == status));
            TaskList { tasks: wanted.collect(), next: page.next }
        });
        let _ = reply.send(answer.map_err(|error| match error {
            StoreError::Refused(why) => DeskError::Refused(why),
            error => DeskError::Store(error.to_string()),
        }));
    }
}

fn executor_view(executor: &Known, report: Option<&CapacityReport>, running: u32) -> ExecutorView {
    ExecutorView {
        name: executor.name.to_string(),
        url: executor.url.clone(),
        up: executor.up,
        running,
        reserved: report.map_or(0, |report| report.reserved),
        max_concurrent: report.map_or(0, |report| report.max_concurrent),
        runtimes: report.map(|report| report.runtimes.clone()).unwrap_or_default(),
        kind: report.map(|report| report.kind.clone()).unwrap_or_default(),
        sandbox: report.map(|report| report.sandbox.clone()).unwrap_or_default(),
    }
}

// === impl TaskView ===

impl TaskView {
    /// What the record alone tells.
    pub(super) fn of(record: &TaskRecord) -> Self {
        let (spec, state) = (&record.spec, &record.state);
        let ending = state.ending.as_ref();
        let queued = state.status == TaskStatus::Queued;
        Self {
            id: record.id.clone(),
            status: state.status,
            runtime: spec.runtime.clone(),
            priority: spec.priority,
            timeout_ms: spec.timeout_ms,
            retries: spec.retries,
            args: spec.args.clone(),
            env: spec.env.clone(),
            attempt: state.attempt,
            failures: state.failures,
            losses: state.losses,
            submitted_ms: state.submitted_ms,
            started_ms: state.started_ms,
            ended_ms: state.ended_ms,
            queue_position: None,
            queue_age_ms: queued.then(|| now_ms().saturating_sub(state.queued_ms)),
            estimated_wait_ms: None,
            not_before_ms: state.not_before_ms,
            executor: state.placed.as_ref().map(|placed| placed.executor.to_string()),
            cancel_asked: state.cancel_asked,
            reason: ending.map(|ending| ending.reason),
            exit_code: ending.and_then(|ending| ending.exit_code),
            message: ending.map(|ending| ending.message.clone()).unwrap_or_default(),
            stopped: ending.map(|ending| ending.stopped.clone()).unwrap_or_default(),
            ran_ms: ending.map(|ending| ending.ran_ms),
            output_cut: ending.is_some_and(|ending| ending.output_cut),
        }
    }
}
