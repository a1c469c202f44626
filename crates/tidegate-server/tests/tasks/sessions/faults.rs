//! Links, workers and managers that fail: each task ends once, with all its output.

use super::bed::{Bed, BedSettings, ticking, until, worker};
use super::relay::Relay;
use crate::folder::TempFolder;
use crate::node::spec;
use std::time::Duration;
use tidegate::task::{TaskId, TaskSpec, TaskStatus};
use tidegate_server::tasks::session::Lane;
use tidegate_server::tasks::worker::SessionWorker;
use tokio::time::{Instant, sleep};

/// A lease that a test can outlast.
const SHORT_LEASE: Duration = Duration::from_secs(1);

fn short(folder: &TempFolder) -> Bed {
    Bed::start(folder, BedSettings { lease: SHORT_LEASE, ..BedSettings::default() })
}

/// Code that prints its steps and counts them, for about so long.
pub fn steps(count: u32, every_ms: u32) -> String {
    let step =
        |n| format!("print {n}\nprogress {{\"counters\": {{\"n\": {n}}}}}\nsleep {every_ms}ms\n");
    (1..=count).map(step).collect()
}

/// Output of [`steps`].
pub fn printed(count: u32) -> String {
    (1..=count).map(|n| format!("{n}\n")).collect()
}

pub async fn running(bed: &Bed, id: &TaskId) {
    bed.until(id, |view| view.status == TaskStatus::Running).await;
}

pub fn started(worker: &SessionWorker) -> u64 {
    worker.executor().counts().started
}

#[test]
fn a_cut_shorter_than_the_lease_is_not_noticed_by_the_task() {
    let folder = TempFolder::new("fault-cut");
    let bed = Bed::start(&folder, BedSettings::default());
    let relay = Relay::start(bed.address);
    let worker = worker("w1", 2, relay.address);
    bed.run(async {
        let long = bed.submit("long", &steps(60, 50)).await;
        let ends_meanwhile = bed.submit("meanwhile", &steps(20, 50)).await;
        running(&bed, &long).await;
        running(&bed, &ends_meanwhile).await;
        relay.cut_off();
        until(|| worker.link().manager.is_none()).await;
        sleep(Duration::from_secs(2)).await;
        relay.heal();
        for (id, count) in [(&ends_meanwhile, 20), (&long, 60)] {
            let view = bed.until_over(id).await;
            assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 1), "{view:?}");
            assert_eq!(bed.text(id).await, printed(count));
        }
        assert_eq!(started(&worker), 2);
        until(|| worker.link().followed == 0).await;
    });
}

#[test]
fn a_cut_longer_than_the_lease_stops_the_execution_and_the_task_runs_elsewhere() {
    let folder = TempFolder::new("fault-lease");
    let bed = short(&folder);
    let relay = Relay::start(bed.address);
    let first = worker("w1", 1, relay.address);
    bed.run(async {
        let id = bed.submit("a", "print begun\nsleep 5s\nprint done").await;
        running(&bed, &id).await;
        let began = Instant::now();
        relay.cut_off();
        let second = worker("w2", 1, bed.address);
        until(|| first.executor().capacity().running == 0).await;
        assert!(began.elapsed() < Duration::from_secs(5), "its lease has stopped it");
        let view = bed.until_over(&id).await;
        assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 2), "{view:?}");
        assert_eq!(view.executor.as_deref(), Some("w2"));
        assert_eq!(bed.text(&id).await, "begun\ndone\n");
        assert_eq!((started(&first), started(&second)), (1, 1));
        relay.heal();
        bed.until_up("w1").await;
        assert_eq!(bed.handle.task(&id).await.unwrap().attempt, 2, "the first one changes nothing");
    });
}

#[test]
fn a_worker_that_dies_loses_its_task_to_another_after_the_lease() {
    let folder = TempFolder::new("fault-death");
    let bed = short(&folder);
    let first = worker("w1", 1, bed.address);
    bed.run(async {
        let id = bed.submit("a", &steps(20, 20)).await;
        running(&bed, &id).await;
        drop(first);
        let second = worker("w2", 1, bed.address);
        let view = bed.until_over(&id).await;
        assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 2), "{view:?}");
        assert_eq!(bed.text(&id).await, printed(20));
        assert_eq!(started(&second), 1);
    });
}

/// The new process says that it does not know the execution: nobody waits for the lease.
#[test]
fn a_worker_that_restarts_runs_its_task_again_at_once() {
    let folder = TempFolder::new("fault-restart");
    let lease = Duration::from_secs(60);
    let bed = Bed::start(&folder, BedSettings { lease, ..BedSettings::default() });
    let first = worker("w1", 1, bed.address);
    bed.run(async {
        let id = bed.submit("a", &steps(20, 20)).await;
        running(&bed, &id).await;
        drop(first);
        let began = Instant::now();
        let second = worker("w1", 1, bed.address);
        let view = bed.until_over(&id).await;
        assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 2), "{view:?}");
        assert!(began.elapsed() < lease / 2, "{:?}", began.elapsed());
        assert_eq!(started(&second), 1);
    });
}

/// Starts tasks, ends the manager by `end` while they run, and starts another with its folder and port.
fn restart(name: &str, end: impl FnOnce(Bed)) {
    let folder = TempFolder::new(name);
    let bed = Bed::start(&folder, BedSettings::default());
    let address = bed.address;
    let worker = worker("w1", 8, address);
    let ids = bed.run(async {
        let mut ids = Vec::new();
        for nth in 0..8 {
            // Some end before the manager is back, and some after.
            ids.push(bed.submit(&format!("t{nth}"), &steps(10 + 10 * nth, 20)).await);
        }
        for id in &ids {
            running(&bed, id).await;
        }
        // Running is persisted 10 ms after the start.
        sleep(Duration::from_millis(100)).await;
        ids
    });
    end(bed);
    let bed = Bed::start(&folder, BedSettings { address, ..BedSettings::default() });
    bed.run(async {
        for (nth, id) in ids.iter().enumerate() {
            let view = bed.until_over(id).await;
            assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 1), "{view:?}");
            assert_eq!(bed.text(id).await, printed(10 + 10 * nth as u32));
        }
        assert_eq!(started(&worker), 8, "each ran once");
        until(|| worker.link().followed == 0).await;
    });
}

#[test]
fn tasks_that_run_while_their_manager_restarts_end_once() {
    restart("fault-manager", Bed::shutdown);
}

#[test]
fn tasks_that_run_while_their_manager_is_dropped_end_once() {
    restart("fault-dropped", drop);
}

/// Starts tasks that write and wait.
async fn hanging(bed: &Bed, worker: &SessionWorker, names: &str) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for nth in 0..5 {
        ids.push(bed.submit(&format!("{names}{nth}"), "fill 200000\nhang").await);
    }
    until(|| worker.executor().capacity().running == 5).await;
    ids
}

/// Time from a cancellation to the end of its execution at the worker, in the median.
async fn time_to_cancel(bed: &Bed, worker: &SessionWorker, ids: &[TaskId]) -> Duration {
    let mut times = Vec::new();
    for (id, left) in ids.iter().zip((0..5).rev()) {
        let began = Instant::now();
        bed.handle.cancel(id).await.unwrap();
        while worker.executor().capacity().running > left {
            sleep(Duration::from_millis(1)).await;
        }
        times.push(began.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

#[test]
fn a_cancellation_does_not_wait_behind_data_that_nobody_reads() {
    let folder = TempFolder::new("fault-frozen");
    let bed = Bed::start(&folder, BedSettings::default());
    let relay = Relay::start(bed.address);
    let worker = worker("w1", 5, relay.address);
    bed.run(async {
        let ids = hanging(&bed, &worker, "free").await;
        let free = time_to_cancel(&bed, &worker, &ids).await;
        for id in &ids {
            bed.until_over(id).await;
        }
        let ids = hanging(&bed, &worker, "frozen").await;
        relay.freeze(Lane::Data);
        let frozen = time_to_cancel(&bed, &worker, &ids).await;
        println!("cancelled in {free:?}, with a frozen data lane in {frozen:?}");
        assert!(frozen < Duration::from_millis(100).max(3 * free), "{frozen:?}, {free:?}");
        relay.heal();
        for id in &ids {
            assert_eq!(bed.until_over(id).await.status, TaskStatus::Cancelled);
            assert_eq!(bed.text(id).await.len(), 200_000);
        }
    });
}

#[test]
fn output_and_counters_are_exact_through_many_cuts() {
    let folder = TempFolder::new("fault-cuts");
    let bed = Bed::start(&folder, BedSettings::default());
    let relay = Relay::start(bed.address);
    let worker = worker("w1", 4, relay.address);
    bed.run(async {
        let mut ids = Vec::new();
        for nth in 0..4 {
            let code = format!("{}hang", steps(100, 20));
            ids.push(bed.submit(&format!("t{nth}"), &code).await);
        }
        for id in &ids {
            running(&bed, id).await;
        }
        // One lane, the other, both; the last cuts find the worker while it joins again.
        for (nth, pause_ms) in [150, 250, 100, 300, 50, 20, 200, 10].into_iter().enumerate() {
            sleep(Duration::from_millis(pause_ms)).await;
            let lanes = [&[Lane::Data][..], &[Lane::Control], &[Lane::Control, Lane::Data]];
            lanes[nth % 3].iter().for_each(|lane| relay.cut(*lane));
        }
        relay.half_cut(Lane::Data);
        relay.half_cut(Lane::Control);
        for id in &ids {
            let counted = |view: &tidegate_server::tasks::manager::TaskView| {
                view.progress.as_ref().and_then(|told| told.progress.counters.get("n").copied())
            };
            let view = bed.until(id, |view| counted(view) == Some(100)).await;
            assert_eq!((view.status, view.attempt), (TaskStatus::Running, 1));
            bed.handle.cancel(id).await.unwrap();
            assert_eq!(bed.until_over(id).await.status, TaskStatus::Cancelled);
            assert_eq!(bed.text(id).await, printed(100));
        }
        assert_eq!(started(&worker), 4);
        assert!(relay.opened(Lane::Data) > 3, "{} sessions", relay.opened(Lane::Data));
        until(|| worker.link().followed == 0).await;
    });
}

/// The five states of the worker's queue to a manager that is 300 ms away.
#[test]
fn ad32_a_slow_manager_is_seen_in_the_five_states_of_the_queue_and_nothing_is_lost() {
    let folder = TempFolder::new("fault-slow");
    let bed = Bed::start(&folder, BedSettings::default());
    let relay = Relay::start(bed.address);
    relay.delay(Lane::Data, Duration::from_millis(300));
    let worker = worker("w1", 420, relay.address);
    bed.run(async {
        let code = format!("{}print end", ticking(150, 100));
        let mut ids = Vec::new();
        let stages = [
            (100, "HEALTHY"),
            (190, "THROTTLED"),
            (225, "BATCHING"),
            (300, "OVERFLOW"),
            (420, "SATURATED"),
        ];
        for (tasks, state) in stages {
            while ids.len() < tasks {
                let spec = TaskSpec { timeout_ms: 600_000, ..spec(&code) };
                ids.push(bed.submit_as(&format!("t{}", ids.len()), spec).await);
            }
            let began = Instant::now();
            let now = || worker.link().queue.map(|queue| queue.queue.state.name());
            while now() != Some(state) {
                let stats = worker.link().queue;
                assert!(began.elapsed() < Duration::from_secs(10), "{tasks}, {state}: {stats:?}");
                sleep(Duration::from_millis(1)).await;
            }
        }
        for id in &ids {
            let view = bed.until_over(id).await;
            assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 1), "{view:?}");
            assert_eq!(bed.text(id).await, "end\n");
        }
        assert_eq!(started(&worker), 420);
        let queue = worker.link().queue.unwrap();
        println!("{queue:?} {:?}", worker.link().counts);
        let (dropped, sent) = (queue.queue.total_dropped, queue.sender.total_sent);
        assert!(dropped < sent, "{dropped} were queued only to be displaced, {sent} were sent");
        until(|| worker.link().followed == 0).await;
    });
}
