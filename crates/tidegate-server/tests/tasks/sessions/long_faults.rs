//! Links that are gone for longer than every timeout, and links that lose packets.

use super::bed::{Bed, BedSettings, run, until, worker};
use super::faults::{printed, running, started, steps};
use super::relay::Relay;
use crate::folder::TempFolder;
use std::time::Duration;
use tidegate::Role;
use tidegate::outbox::QueueConfig;
use tidegate::task::{TaskId, TaskStatus};
use tidegate_server::tasks::session::Lane;
use tidegate_server::tasks::worker::SessionWorker;
use tokio::time::{Instant, sleep};

/// Longer than a lease of 15 s and than every timeout of either side, the longest of which is 10 s.
const CUT: Duration = Duration::from_secs(30);

/// Manager, link and worker of one cut.
struct Link {
    bed: Bed,
    relay: Relay,
    worker: SessionWorker,
}

// === impl Link ===

impl Link {
    fn start(folder: &TempFolder, lease: Duration) -> Self {
        let bed = Bed::start(folder, BedSettings { lease, ..BedSettings::default() });
        let relay = Relay::start(bed.address);
        let worker = worker("w1", 4, relay.address);
        Self { bed, relay, worker }
    }

    /// Starts tasks, each with so many steps of 100 ms.
    async fn start_tasks(&self, steps_of: &[u32]) -> Vec<TaskId> {
        let mut ids = Vec::new();
        for (nth, count) in steps_of.iter().enumerate() {
            let code = steps(*count, 100);
            let spec = tidegate::task::TaskSpec { timeout_ms: 600_000, ..crate::node::spec(&code) };
            ids.push(self.bed.submit_as(&format!("t{nth}"), spec).await);
        }
        for id in &ids {
            running(&self.bed, id).await;
        }
        ids
    }

    /// Cuts the link, and waits. What the worker buffers meanwhile is within its bound at each moment.
    async fn cut_for_long(&self, cut: impl FnOnce(&Relay)) {
        let bound = QueueConfig::for_role(Role::Worker).bound();
        let began = Instant::now();
        cut(&self.relay);
        while began.elapsed() < CUT {
            if let Some(stats) = self.worker.link().queue {
                let waiting = stats.queue.primary_size + stats.queue.overflow_size;
                assert!(waiting <= bound, "{stats:?}");
            }
            sleep(Duration::from_millis(100)).await;
        }
        self.relay.heal();
    }
}

/// The lease outlasts the cut: each task goes on, or has ended, where it was.
async fn is_not_noticed(link: &Link, cut: impl FnOnce(&Relay)) {
    let counts = [20, 100, 290, 340];
    let ids = link.start_tasks(&counts).await;
    link.cut_for_long(cut).await;
    for (id, count) in ids.iter().zip(counts) {
        let view = link.bed.until_over(id).await;
        assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 1), "{view:?}");
        assert_eq!(link.bed.text(id).await, printed(count));
        let last = view.progress.map(|told| told.progress.counters["n"]);
        assert!(last.is_none_or(|last| last == u64::from(count)), "{last:?} of {count}");
    }
    assert_eq!(started(&link.worker), 4, "each ran once");
    until(|| link.worker.link().followed == 0).await;
}

/// The cut outlasts the lease: each task ends once, at another worker, and what the first one tells changes
/// nothing.
async fn is_run_elsewhere(link: &Link) {
    let counts = [20, 100, 400];
    let ids = link.start_tasks(&counts).await;
    let other = worker("w2", 4, link.bed.address);
    link.cut_for_long(Relay::cut_off).await;
    link.bed.until_up("w1").await;
    for (id, count) in ids.iter().zip(counts).take(2) {
        let view = link.bed.until_over(id).await;
        assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 2), "{view:?}");
        assert_eq!(view.executor.as_deref(), Some("w2"));
        assert!(link.bed.text(id).await.ends_with(&printed(count)), "the second attempt's");
    }
    let view = link.bed.until(&ids[2], |view| view.attempt == 2).await;
    assert_eq!(view.executor.as_deref(), Some("w2"), "it would run for 40 s");
    assert_eq!((started(&link.worker), started(&other)), (3, 3));
    assert_eq!(link.worker.executor().capacity().running, 0, "its lease has stopped them");
    link.bed.handle.cancel(&ids[2]).await.unwrap();
    assert_eq!(link.bed.until_over(&ids[2]).await.status, TaskStatus::Cancelled);
    until(|| link.worker.link().followed == 0).await;
}

#[test]
fn a_cut_of_30_s_ends_each_task_once() {
    let folders = ["cut-closed", "cut-swallowed", "cut-lease"].map(TempFolder::new);
    let leases = [60, 60, 15].map(Duration::from_secs);
    let [closed, swallowed, short] = [0, 1, 2].map(|at| Link::start(&folders[at], leases[at]));
    run(async {
        tokio::join!(
            is_not_noticed(&closed, Relay::cut_off),
            // Neither side hears that the connections are gone.
            is_not_noticed(&swallowed, Relay::swallow),
            is_run_elsewhere(&short),
        );
    });
}

#[test]
fn a_link_that_loses_packets_loses_nothing() {
    let folder = TempFolder::new("fault-loss");
    let link = Link::start(&folder, Duration::from_secs(15));
    run(async {
        for lane in [Lane::Control, Lane::Data] {
            link.relay.delay(lane, Duration::from_millis(150));
            link.relay.lose(lane, 300);
        }
        let counts = [20, 40, 60, 80];
        let ids = link.start_tasks(&counts).await;
        for (id, count) in ids.iter().zip(counts) {
            let view = link.bed.until_over(id).await;
            assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 1), "{view:?}");
            assert_eq!(link.bed.text(id).await, printed(count));
        }
        let cancelled = link.bed.submit("cancelled", "print begun\nhang").await;
        running(&link.bed, &cancelled).await;
        link.bed.handle.cancel(&cancelled).await.unwrap();
        assert_eq!(link.bed.until_over(&cancelled).await.status, TaskStatus::Cancelled);
        assert_eq!(started(&link.worker), 5);
        assert_eq!(link.relay.opened(Lane::Data), 1, "a loss is no reason to dial again");
        assert!(link.relay.losses() >= 10, "{} losses", link.relay.losses());
        until(|| link.worker.link().followed == 0).await;
    });
}
