use super::hub::WorkerHub;
use super::view::{WorkerList, WorkerView};
use crate::cluster::{MemberLoad, MemberWorkers};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

/// Workers of a manager, for the list of members.
pub struct HubMembers(Arc<WorkerHub>);

// === impl HubMembers ===

impl HubMembers {
    /// The workers of this hub.
    #[must_use]
    pub fn new(hub: Arc<WorkerHub>) -> Self {
        Self(hub)
    }
}

impl MemberWorkers for HubMembers {
    fn loads(&self, own: &str) -> BTreeMap<String, MemberLoad> {
        let WorkerList { workers, stats_buffer, .. } = self.0.list();
        let connected = workers.into_iter().filter(|worker| worker.connected);
        let mut loads: BTreeMap<String, MemberLoad> = connected.map(load).collect();
        let level = Some(stats_buffer.level.to_string());
        loads.insert(own.to_owned(), MemberLoad { level, ..MemberLoad::default() });
        loads
    }

    fn knows(&self, worker: &str) -> bool {
        self.0.find(worker).is_some()
    }

    fn set_draining<'a>(
        &'a self,
        worker: &'a str,
        draining: bool,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(self.0.set_drained(worker, draining))
    }
}

fn load(worker: WorkerView) -> (String, MemberLoad) {
    let (running, slots) = (Some(worker.running), Some(worker.slots));
    let level = worker.stats.map(|stats| stats.flush_state);
    (worker.name, MemberLoad { running, slots, level })
}
