//! Tasks run at workers, and report.

use super::bed::{Bed, BedSettings, worker};
use super::peer_worker::{PeerWorker, Told, update};
use crate::folder::TempFolder;
use crate::node::spec;
use std::time::Duration;
use tidegate::task::{TaskSpec, TaskStatus};
use tidegate_server::tasks::session::AnswerResult;
use tokio::time::sleep;

#[test]
fn a_task_runs_at_a_worker_that_dialled() {
    let folder = TempFolder::new("session-run");
    let bed = Bed::start(&folder, BedSettings::default());
    let _worker = worker("w1", 2, bed.address);
    bed.run(async {
        let id = bed.submit("a", "print hello\nwarn careful\nsleep 20ms\nprint bye\nfail 3").await;
        let view = bed.until_over(&id).await;
        assert_eq!((view.status, view.exit_code), (TaskStatus::Failed, Some(3)), "{view:?}");
        assert_eq!((view.executor.as_deref(), view.attempt), (Some("w1"), 1));
        assert_eq!(bed.text(&id).await, "hello\ncareful\nbye\n");
    });
}

#[test]
fn many_tasks_end_once_each_with_their_own_output() {
    let folder = TempFolder::new("session-many");
    let bed = Bed::start(&folder, BedSettings::default());
    let workers = [worker("w1", 3, bed.address), worker("w2", 5, bed.address)];
    bed.run(async {
        let mut ids = Vec::new();
        for nth in 0..300 {
            ids.push(bed.submit(&format!("t{nth}"), &format!("print {nth}")).await);
        }
        for (nth, id) in ids.iter().enumerate() {
            let view = bed.until_over(id).await;
            assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 1), "{view:?}");
            assert_eq!(bed.text(id).await, format!("{nth}\n"));
        }
    });
    let started: u64 = workers.iter().map(|worker| worker.executor().counts().started).sum();
    assert_eq!(started, 300, "each ran once");
    bed.run(async {
        while workers.iter().any(|worker| worker.link().followed > 0) {
            sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn long_output_arrives_whole_and_before_the_end() {
    let folder = TempFolder::new("session-output");
    let bed = Bed::start(&folder, BedSettings::default());
    let _worker = worker("w1", 1, bed.address);
    bed.run(async {
        let id = bed.submit("a", "fill 900000\nprint end").await;
        assert_eq!(bed.until_over(&id).await.status, TaskStatus::Succeeded);
        let text = bed.text(&id).await;
        assert_eq!((text.len(), text.ends_with("end\n")), (900_004, true));
    });
}

#[test]
fn workers_come_and_go_and_their_slots_with_them() {
    let folder = TempFolder::new("session-slots");
    let bed = Bed::start(&folder, BedSettings::default());
    bed.run(async {
        let waits = bed.submit("waits", "print x").await;
        sleep(Duration::from_millis(50)).await;
        assert_eq!(bed.handle.task(&waits).await.unwrap().status, TaskStatus::Queued);
        let first = worker("w1", 1, bed.address);
        assert_eq!(bed.until_over(&waits).await.status, TaskStatus::Succeeded);
        assert_eq!(bed.worker("w1").unwrap().slots, 1);
        let second = worker("w2", 4, bed.address);
        bed.until_up("w2").await;
        let drained = tokio::task::spawn_blocking(move || first.shutdown(Duration::from_secs(5)));
        drained.await.unwrap();
        while bed.worker("w1").unwrap().connected {
            sleep(Duration::from_millis(5)).await;
        }
        let more = bed.submit("more", "print y").await;
        assert_eq!(bed.until_over(&more).await.executor.as_deref(), Some("w2"));
        drop(second);
    });
}

#[test]
fn a_task_reports_counters_with_rates_gauges_histograms_and_a_message() {
    let folder = TempFolder::new("session-progress");
    let bed = Bed::start(&folder, BedSettings::default());
    let _worker = worker("w1", 1, bed.address);
    bed.run(async {
        let code = "progress {\"counters\": {\"rows\": 100}, \"gauges\": {\"loss\": 0.5}}\n\
                    progress {\"histograms\": {\"ms\": {\"bounds\": [1, 5], \"counts\": [3, 2, 0]}}}\n\
                    sleep 1100ms\n\
                    progress {\"histograms\": {\"ms\": {\"bounds\": [1, 5], \"counts\": [3, 7, 1]}}}\n\
                    progress {\"counters\": {\"rows\": 1200}, \"message\": \"epoch 3\", \"done\": 3, \"total\": 10}\n\
                    hang";
        let id = bed.submit("a", code).await;
        let view = bed
            .until(&id, |view| {
                view.progress.as_ref().is_some_and(|progress| progress.progress.done.is_some())
            })
            .await;
        let progress = view.progress.unwrap();
        assert_eq!(progress.progress.counters["rows"], 1_200);
        assert_eq!(progress.progress.gauges["loss"], 0.5, "gauges stay");
        assert_eq!(progress.progress.message.as_deref(), Some("epoch 3"));
        assert_eq!(progress.progress.histograms["ms"].counts(), [3, 7, 1]);
        let rate = progress.rates["rows"];
        assert!((500.0..=1_010.0).contains(&rate), "1,100 rows in a little more than 1.1 s: {rate}");
        let series = bed.handle.progress(&id, 0).await.unwrap();
        let rows: Vec<_> = series.points.iter().map(|point| point.counters["rows"]).collect();
        assert_eq!((rows.first(), rows.last()), (Some(&100), Some(&1_200)), "{rows:?}");
        let since = series.points.last().unwrap().at_ms;
        assert_eq!(bed.handle.progress(&id, since).await.unwrap().points.len(), 1);
        bed.handle.cancel(&id).await.unwrap();
        assert_eq!(bed.until_over(&id).await.status, TaskStatus::Cancelled);
    });
}

#[test]
fn every_worker_reports_itself() {
    let folder = TempFolder::new("session-stats");
    let bed = Bed::start(&folder, BedSettings::default());
    let _worker = worker("w1", 2, bed.address);
    bed.run(async {
        let id = bed.submit("a", "hang").await;
        let reported = |view: &tidegate_server::tasks::manager::WorkerView| {
            let stats = view.stats.as_ref()?;
            Some((stats.running, stats.slots, stats.memory_bytes? > 0, stats.load_1m? >= 0.0))
        };
        loop {
            let view = bed.worker("w1");
            if view.as_ref().and_then(reported) == Some((1, 2, true, true)) {
                let stats = view.unwrap().stats.unwrap();
                assert_eq!(stats.flush_state, "NO_BACKPRESSURE");
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
        bed.handle.cancel(&id).await.unwrap();
        bed.until_over(&id).await;
    });
}

#[test]
fn a_queued_task_is_cancelled_and_a_full_worker_gets_no_more() {
    let folder = TempFolder::new("session-full");
    let bed = Bed::start(&folder, BedSettings::default());
    let worker = worker("w1", 1, bed.address);
    bed.run(async {
        let runs = bed.submit("runs", "hang").await;
        bed.until(&runs, |view| view.status == TaskStatus::Running).await;
        let waits = bed.submit_as("waits", TaskSpec { retries: 1, ..spec("print x") }).await;
        sleep(Duration::from_millis(30)).await;
        assert_eq!(bed.handle.task(&waits).await.unwrap().status, TaskStatus::Queued);
        bed.handle.cancel(&waits).await.unwrap();
        assert_eq!(bed.until_over(&waits).await.status, TaskStatus::Cancelled);
        bed.handle.cancel(&runs).await.unwrap();
        assert_eq!(bed.until_over(&runs).await.status, TaskStatus::Cancelled);
    });
    assert_eq!(worker.executor().counts().started, 1);
}

/// A renewal has a lane of its own in the queue, and may overtake the dispatch of what it renews.
#[test]
fn a_task_that_is_unknown_before_its_dispatch_arrives_is_neither_cancelled_nor_lost() {
    let folder = TempFolder::new("session-overtaken");
    let lease = Duration::from_secs(1);
    let bed = Bed::start(&folder, BedSettings { lease, ..BedSettings::default() });
    bed.run(async {
        let mut peer = PeerWorker::join(bed.address, "p1", 1, 1).await;
        let id = bed.submit("a", "x").await;
        let body = peer.dispatched().await;
        // Renewals that meet the unanswered dispatch do not ask for it.
        for _ in 0..3 {
            let Told::Lease(interests) = peer.told().await.unwrap() else { panic!("a renewal") };
            assert_eq!(interests, [], "{} is not there yet", body.eval_id);
            peer.report().await;
        }
        let key = format!("{}@{}", body.eval_id, body.attempt);
        let answers = [AnswerResult::Unknown, AnswerResult::Started { fence: 1 }];
        peer.answer(answers.map(|answer| (key.clone(), answer)).to_vec()).await;
        sleep(Duration::from_millis(50)).await;
        peer.send(vec![update("a", "succeeded", "x\n", None)], false).await;
        let view = bed.until_over(&id).await;
        assert_eq!((view.status, view.attempt), (TaskStatus::Succeeded, 1), "{view:?}");
    });
}
