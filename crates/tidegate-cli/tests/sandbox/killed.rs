//! Workers, supervisors and waiting futures that go away, and tasks that must go with them.

use crate::bench::{Bench, Mode, PATIENCE, config, runs, unique, wait_until, work};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Command, Stdio};
use tidegate::task::EndReason;
use tidegate_server::tasks::execution::{OutputSink, ProgressSink, StopSignal};
use tidegate_server::tasks::sandbox::ProcessConfig;

const EVERY_MODE: [Mode; 3] = [Mode::All, Mode::NoBubblewrap, Mode::WatcherOnly];
/// In the environment of this test when it is the worker that will be killed: the mode and the mark.
const PART: &str = "TIDEGATE_SANDBOX_PART";

fn mark() -> String {
    format!("{}.75", 100_000 + unique().replace('-', "").parse::<u64>().unwrap())
}

/// A task that two sessions are needed to follow.
fn long(mark: &str) -> String {
    format!("trap '' TERM; setsid sleep {mark} & setsid sleep {mark} & sleep {mark}")
}

#[tokio::test]
async fn a_worker_that_is_killed_takes_its_tasks_along() {
    for mode in EVERY_MODE {
        let (mark, config) = (mark(), config(mode));
        let folder = config.folder.display();
        let mut worker = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::the_worker_that_is_killed", "--nocapture"])
            .env(PART, format!("{mode:?} {mark} {folder}"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the task runs", || runs(&mark));
        worker.kill().unwrap();
        worker.wait().unwrap();
        wait_until("the task is gone", || !runs(&mark));
        assert_eq!(fs::read_dir(&config.folder).unwrap().count(), 1, "what it was working on");
        // Which also sees that only the new worker's is there.
        Bench::with(config).await.assert_healthy().await;
    }
}

/// Not a test but a part of the one above, which starts it as a process of its own.
#[tokio::test]
async fn the_worker_that_is_killed() {
    let Ok(part) = std::env::var(PART) else { return };
    let [mode, mark, folder] = part.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
    let mode = EVERY_MODE.into_iter().find(|known| format!("{known:?}") == mode).unwrap();
    let bench = Bench::with(ProcessConfig { folder: folder.into(), ..config(mode) }).await;
    bench.run("sh", &long(mark)).await;
}

#[tokio::test]
async fn nobody_waits_any_more() {
    for mode in EVERY_MODE {
        let (bench, mark) = (Bench::new(mode).await, mark());
        let work = work("sh", &long(&mark));
        let (_switch, stop) = StopSignal::new();
        let (sink, progress) = (OutputSink::new(1 << 10), ProgressSink::new());
        let started = async {
            while !runs(&mark) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            ending = bench.runner.run(&work, &sink, &progress, stop) => panic!("{ending:?}"),
            started = tokio::time::timeout(PATIENCE, started) => started.unwrap(),
        }
        wait_until("the task is gone", || !runs(&mark));
        wait_until("and so is its folder", || bench.work_folders().is_empty());
        bench.assert_healthy().await;
    }
}

#[tokio::test]
async fn a_supervisor_that_is_killed() {
    for mode in EVERY_MODE {
        let (bench, mark) = (Bench::new(mode).await, mark());
        let kill = async {
            while !runs(&mark) {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            kill_process(supervisor_of(&mark), Signal::KILL).unwrap();
            std::future::pending::<()>().await;
        };
        let code = long(&mark);
        let ran = tokio::select! {
            ran = bench.run("sh", &code) => ran,
            () = kill => unreachable!("it waits forever"),
        };
        assert_eq!(ran.ending.reason, EndReason::Signal, "{mode:?} {}", ran.story());
        assert!(!runs(&mark), "{mode:?}");
        bench.assert_healthy().await;
    }
}

/// Goes up from a process of the task to the one that was started as its supervisor.
fn supervisor_of(mark: &str) -> Pid {
    let words = |pid: &str| -> Vec<String> {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into()).collect()
    };
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().into_string().ok());
    let mut pid = { pids }.find(|pid| words(pid).iter().any(|word| word == mark)).unwrap();
    loop {
        let words = words(&pid);
        // Bubblewrap's own arguments end with the same words.
        if words.iter().any(|word| word == "supervise") && !words[0].ends_with("bwrap") {
            return Pid::from_raw(pid.parse().unwrap()).unwrap();
        }
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
        pid = parent.trim().to_owned();
    }
}
