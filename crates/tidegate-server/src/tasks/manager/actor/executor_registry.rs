use crate::tasks::execution::CapacityReport;
use crate::tasks::manager::link::{ExecutorTarget, Link};
use crate::tasks::manager::metrics::ExecutorGauge;
use crate::tasks::manager::sessions::{WorkerHub, WorkerSession};
use crate::tasks::manager::view::ExecutorView;
use std::sync::Arc;
use tidegate::capacity::ExecutorId;
use tidegate::task::find_runtime;

/// The executors, by id, with their last reports: the configured ones, and the workers that have joined.
pub(super) struct ExecutorRegistry {
    executors: Vec<KnownExecutor>,
}

struct KnownExecutor {
    name: Box<str>,
    url: String,
    link: Arc<Link>,
    up: bool,
    probing: bool,
    report: Option<CapacityReport>,
    /// A worker that dials: when it is gone, its id may become another's.
    is_worker: bool,
}

// === impl ExecutorRegistry ===

impl ExecutorRegistry {
    pub(super) fn new(targets: &[ExecutorTarget]) -> Self {
        Self { executors: targets.iter().map(KnownExecutor::new).collect() }
    }

    /// Ids of all executors.
    pub(super) fn ids(&self) -> impl Iterator<Item = ExecutorId> + use<> {
        (0..self.executors.len()).filter_map(|at| u32::try_from(at).ok().map(ExecutorId))
    }

    fn get(&self, id: ExecutorId) -> Option<&KnownExecutor> {
        self.executors.get(id.0 as usize)
    }

    /// Name and link of an executor.
    pub(super) fn link(&self, id: ExecutorId) -> Option<(Box<str>, Arc<Link>)> {
        self.get(id).map(|executor| (executor.name.clone(), Arc::clone(&executor.link)))
    }

    /// The executor of that name.
    pub(super) fn find(&self, name: &str) -> Option<ExecutorId> {
        let at = self.executors.iter().position(|executor| &*executor.name == name)?;
        u32::try_from(at).ok().map(ExecutorId)
    }

    /// Adds a worker, or finds it: id of the worker. A worker that is gone gives its id to a new one, if `is_free`
    /// says that nothing of it is left.
    pub(super) fn add_worker(
        &mut self,
        hub: &Arc<WorkerHub>,
        worker: Arc<WorkerSession>,
        is_free: impl Fn(ExecutorId) -> bool,
    ) -> Option<ExecutorId> {
        let found = self.find(worker.name());
        let name: Box<str> = worker.name().into();
        if let Some(id) = found {
            let known = self.executors.get_mut(id.0 as usize)?;
            // The hub may have forgotten a worker that was gone, and made another for its name.
            if known.is_worker && !known.link.is_session_of(&worker) {
                known.link = Arc::new(Link::session(Arc::clone(hub), worker));
            }
            return Some(id);
        }
        let link = Arc::new(Link::session(Arc::clone(hub), worker));
        let known = KnownExecutor {
            name,
            url: String::new(),
            link,
            up: false,
            probing: false,
            report: None,
            is_worker: true,
        };
        let gone =
            |executor: &KnownExecutor| executor.is_worker && !executor.up && !executor.probing;
        let reused = self.ids().find(|id| self.get(*id).is_some_and(gone) && is_free(*id));
        match reused {
            Some(id) => {
                *self.executors.get_mut(id.0 as usize)? = known;
                Some(id)
            }
            None => {
                let id = u32::try_from(self.executors.len()).ok().map(ExecutorId)?;
                self.executors.push(known);
                Some(id)
            }
        }
    }

    /// Names of the executors that other managers may know too: those with a URL.
    pub(super) fn remote_names(&self) -> Vec<String> {
        let remote = self.executors.iter().filter(|executor| !executor.url.is_empty());
        remote.map(|executor| executor.url.clone()).collect()
    }

    /// True when the executor of that name ends with this process.
    pub(super) fn is_local(&self, name: &str) -> bool {
        let find = |executor: &&KnownExecutor| &*executor.name == name;
        self.executors.iter().find(find).is_some_and(|executor| executor.link.is_local())
    }

    /// Marks an executor as being probed, and returns its link; `None` while an earlier probe is unanswered.
    pub(super) fn begin_probe(&mut self, id: ExecutorId) -> Option<Arc<Link>> {
        let executor = self.executors.get_mut(id.0 as usize)?;
        let busy = std::mem::replace(&mut executor.probing, true);
        (!busy).then(|| Arc::clone(&executor.link))
    }

    /// Takes in the answer to a probe.
    pub(super) fn end_probe(&mut self, id: ExecutorId, report: Result<CapacityReport, String>) {
        let Some(executor) = self.executors.get_mut(id.0 as usize) else { return };
        executor.probing = false;
        let was_up = executor.up;
        executor.up = report.is_ok();
        match report {
            Ok(report) => {
                if !was_up {
                    let slots = report.max_concurrent;
                    tracing::info!(executor = %executor.name, slots, "executor up");
                }
                executor.report = Some(report);
            }
            Err(error) if was_up || executor.report.is_none() => {
                tracing::warn!(executor = %executor.name, error, "executor down");
            }
            Err(_) => {}
        }
    }

    /// Executions that an executor has reported; `None` when it reports none.
    pub(super) fn executions(&self, id: ExecutorId) -> Option<&[String]> {
        self.get(id)?.report.as_ref()?.executions.as_deref()
    }

    /// Finds the runtime that a task names, at some executor; the error lists those available. Before the first
    /// report, and beside an executor that accepts any, the name is taken as it is.
    pub(super) fn find_runtime(&self, runtime: &str) -> Result<String, Vec<String>> {
        let reports = || self.executors.iter().filter_map(|executor| executor.report.as_ref());
        let accepts_any = |report: &CapacityReport| report.runtimes.is_empty();
        let mut known: Vec<_> = reports().flat_map(|report| report.runtimes.clone()).collect();
        let found = find_runtime(runtime, known.iter().map(String::as_str));
        if found.is_none() && (reports().next().is_none() || reports().any(accepts_any)) {
            return Ok(runtime.to_owned());
        }
        if let Some(found) = found {
            return Ok(found.to_owned());
        }
        known.sort();
        known.dedup();
        Err(known)
    }

    /// Views of all executors. An executor of this process is read now, others by their last report; `own` has the
    /// executions of this manager, which may be newer than the report.
    pub(super) fn views(&self, own: impl Fn(ExecutorId) -> u32) -> Vec<ExecutorView> {
        let views = self.ids().zip(&self.executors).map(|(id, executor)| {
            let KnownExecutor { name, url, up, .. } = executor;
            match executor.link.local_capacity() {
                Some(now) => ExecutorView::new(name, url, *up, now.running, Some(&now)),
                None => {
                    let report = executor.report.as_ref();
                    let running = report.map_or(0, |report| report.running).max(own(id));
                    ExecutorView::new(name, url, *up, running, report)
                }
            }
        });
        views.collect()
    }

    /// Gauges of all executors.
    pub(super) fn gauges(&self) -> Vec<ExecutorGauge> {
        let gauge = |executor: &KnownExecutor| ExecutorGauge {
            name: executor.name.to_string(),
            url: executor.url.clone(),
            up: executor.up,
            report: executor.report.clone(),
        };
        self.executors.iter().map(gauge).collect()
    }
}

// === impl KnownExecutor ===

impl KnownExecutor {
    fn new(target: &ExecutorTarget) -> Self {
        let (name, url) = match target {
            ExecutorTarget::Http(target) => (target.url.as_str().into(), target.url.clone()),
            ExecutorTarget::Local(executor) => (executor.id().into(), String::new()),
        };
        let link = Arc::new(Link::new(target));
        Self { name, url, link, up: false, probing: false, report: None, is_worker: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::manager::link::HttpTarget;
    use crate::tasks::manager::sessions::{HubSettings, session_channels};

    fn report(runtimes: &[&str]) -> CapacityReport {
        CapacityReport {
            executor_id: "e".to_owned(),
            can_accept: true,
            running: 1,
            max_concurrent: 2,
            available_slots: 1,
            reserved: 0,
            kind: String::new(),
            runtimes: runtimes.iter().map(|name| (*name).to_owned()).collect(),
            sandbox: Vec::new(),
            executions: None,
            draining: false,
        }
    }

    /// A link to the session that the hub has forgotten would wait for answers that another one gets.
    #[tokio::test]
    async fn a_worker_that_was_forgotten_gets_a_link_to_its_new_session() {
        let hub = || WorkerHub::new(HubSettings::default(), session_channels().0).unwrap();
        let (before, after) = (hub(), hub());
        let (old, new) = (before.worker("w1").unwrap(), after.worker("w1").unwrap());
        let mut registry = ExecutorRegistry::new(&[]);
        let id = registry.add_worker(&before, Arc::clone(&old), |_| true).unwrap();
        assert_eq!(registry.add_worker(&before, Arc::clone(&old), |_| true), Some(id));
        assert!(registry.link(id).unwrap().1.is_session_of(&old));
        assert_eq!(registry.add_worker(&after, Arc::clone(&new), |_| true), Some(id));
        assert!(registry.link(id).unwrap().1.is_session_of(&new));
    }

    #[tokio::test]
    async fn an_id_is_reused_only_when_its_worker_is_gone_and_nothing_of_it_is_left() {
        let hub = WorkerHub::new(HubSettings::default(), session_channels().0).unwrap();
        let worker = |name: &str| hub.worker(name).unwrap();
        let mut registry = ExecutorRegistry::new(&[]);
        let first = registry.add_worker(&hub, worker("w1"), |_| true).unwrap();
        registry.end_probe(first, Ok(report(&["sh"])));
        let second = registry.add_worker(&hub, worker("w2"), |_| true).unwrap();
        assert_ne!(second, first, "it is up");
        registry.end_probe(second, Ok(report(&["sh"])));
        registry.end_probe(first, Err("gone".to_owned()));
        let third = registry.add_worker(&hub, worker("w3"), |_| false).unwrap();
        assert!(third != first && third != second, "an attempt still follows it");
        registry.end_probe(third, Ok(report(&["sh"])));
        assert_eq!(registry.add_worker(&hub, worker("w4"), |_| true), Some(first));
        assert_eq!((registry.find("w1"), registry.find("w4")), (None, Some(first)));
        assert_eq!(registry.executions(first), None, "nothing of the old report is left");
    }

    #[tokio::test]
    async fn an_executor_is_probed_once_at_a_time_and_its_report_counts() {
        let url = "http://127.0.0.1:1";
        let target = HttpTarget { url: url.to_owned(), token: None, tls: None };
        let mut registry = ExecutorRegistry::new(&[ExecutorTarget::Http(target)]);
        let id = registry.find(url).unwrap();
        assert!(registry.begin_probe(id).is_some());
        assert!(registry.begin_probe(id).is_none());
        assert_eq!(registry.find_runtime("cobol"), Ok("cobol".to_owned()), "nothing is known yet");
        registry.end_probe(id, Ok(report(&["sh"])));
        assert!(registry.begin_probe(id).is_some());
        assert_eq!(registry.find_runtime("cobol"), Err(vec!["sh".to_owned()]));
        assert_eq!(registry.find_runtime("sh5"), Ok("sh".to_owned()));
        let views = registry.views(|_| 2);
        assert_eq!((views[0].up, views[0].running), (true, 2), "two were sent since the report");
        registry.end_probe(id, Err("gone".to_owned()));
        assert!(!registry.views(|_| 0)[0].up);
    }
}
