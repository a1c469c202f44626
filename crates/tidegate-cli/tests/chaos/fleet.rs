use crate::ask::get;
use crate::program::{Program, free};
use crate::support::folder::TempFolder;
use crate::target::Target;
use crate::until;
use serde_json::Value;
use std::net::SocketAddr;

/// Slots of each worker.
pub const SLOTS: usize = 2;
/// Lease of managers and executions, short for tests that wait for its end.
const LEASE_MS: u64 = 2_000;
/// Longer than a busy machine keeps anybody from being heard: for tests in which nothing may be lost.
pub const LONG_LEASE_MS: u64 = 20_000;

/// Configuration of a fleet.
pub struct Plan<'a> {
    pub managers: usize,
    pub workers: usize,
    /// The first so many managers know no worker.
    pub without: usize,
    /// Flags of the executor; the target of the test without them.
    pub executor: Option<&'a str>,
    /// Beside the own folder of each manager.
    pub store: Option<String>,
    pub ledger: Option<String>,
    pub placement: &'a str,
    pub lease_ms: u64,
}

/// Managers and workers, and what the workers pass executions on to.
pub struct Fleet {
    pub managers: Vec<Program>,
    pub workers: Vec<Program>,
    pub target: Target,
    admins: Vec<SocketAddr>,
    _folder: TempFolder,
}

// === impl Plan ===

impl Default for Plan<'_> {
    fn default() -> Self {
        let (executor, store, ledger) = (None, None, None);
        let (placement, lease_ms) = ("pull", LEASE_MS);
        Self { managers: 1, workers: 3, without: 0, executor, store, ledger, placement, lease_ms }
    }
}

// === impl Fleet ===

impl Fleet {
    pub fn start(plan: &Plan<'_>) -> Self {
        let (folder, target) = (TempFolder::new("chaos"), Target::start());
        let workers: Vec<_> = (0..plan.workers)
            .map(|nth| {
                let (name, at) = (format!("worker-{nth}"), free());
                Program::start(folder.path(), &name, at, worker(plan, at, &target))
            })
            .collect();
        let urls: Vec<_> = workers.iter().map(|worker| worker.address).collect();
        let admins: Vec<_> = (0..plan.managers).map(|_| free()).collect();
        let start = |(nth, admin): (usize, &SocketAddr)| {
            let (name, at) = (format!("manager-{nth}"), free());
            let store = folder.path().join(format!("tasks-{nth}"));
            let store = plan.store.clone().unwrap_or_else(|| store.display().to_string());
            let urls = if nth < plan.without { &[] } else { &urls[..] };
            let args = manager(plan, &name, (at, *admin), &store, urls);
            Program::start(folder.path(), &name, at, args)
        };
        let managers = admins.iter().enumerate().map(start).collect();
        let fleet = Self { managers, workers, target, admins, _folder: folder };
        (plan.without..plan.managers).for_each(|nth| fleet.until_all_up(nth));
        fleet
    }

    /// Where tasks are handed in.
    pub fn doors(&self) -> Vec<SocketAddr> {
        self.managers.iter().map(|manager| manager.address).collect()
    }

    /// Where operators ask.
    pub fn admin(&self, nth: usize) -> SocketAddr {
        self.admins[nth]
    }

    pub fn slots(&self) -> usize {
        self.workers.len() * SLOTS
    }

    /// Every slot of every worker has an execution that does not end until the target lets go.
    pub fn hold_every_slot(&self) {
        self.target.hold();
        until("every slot is taken", || self.target.held() >= self.slots());
    }

    pub fn capacity(&self, worker: usize) -> Value {
        get(self.workers[worker].address, "/capacity").unwrap_or_default()
    }

    /// Nothing runs on a worker, and nothing is reserved.
    pub fn until_idle(&self, worker: usize) {
        until("a worker's slots are free", || {
            let capacity = self.capacity(worker);
            capacity["running"] == 0 && capacity["reserved"] == 0
        });
    }

    /// A manager has heard from every worker.
    pub fn until_all_up(&self, manager: usize) {
        until("a manager knows every worker", || {
            let told = get(self.managers[manager].address, "/v1/executors").unwrap_or_default();
            let up = told["executors"].as_array().into_iter().flatten();
            up.filter(|executor| executor["up"] == true).count() == self.workers.len()
        });
    }
}

fn worker(plan: &Plan<'_>, at: SocketAddr, target: &Target) -> Vec<String> {
    let kind = plan.executor.unwrap_or("http");
    let mut args = words(&["worker", "--executor", kind, "--log-level", "info"]);
    args.extend(["--listen".to_owned(), at.to_string()]);
    args.extend(["--max-concurrent".to_owned(), SLOTS.to_string()]);
    if kind == "http" {
        args.extend(["--target".to_owned(), format!("http://{}/run", target.address)]);
    }
    args
}

fn manager(
    plan: &Plan<'_>,
    name: &str,
    (at, admin): (SocketAddr, SocketAddr),
    store: &str,
    workers: &[SocketAddr],
) -> Vec<String> {
    let mut args = words(&["up", "--ingest", "false", "--task-slots", "0"]);
    args.extend(["--listen".to_owned(), at.to_string()]);
    args.extend(["--admin-listen".to_owned(), admin.to_string()]);
    for worker in workers {
        args.extend(["--executor-url".to_owned(), format!("http://{worker}")]);
    }
    let ledger = plan.ledger.as_deref().unwrap_or("memory");
    let lease_ms = plan.lease_ms.to_string();
    for (key, value) in [
        ("node", name),
        ("store", store),
        ("slot_ledger", ledger),
        ("placement", plan.placement),
        ("lease_ms", &lease_ms),
    ] {
        args.extend(["--set".to_owned(), format!("tasks.{key}={value}")]);
    }
    args
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}
