//! `tidegate manager`, workers that dial it and a gate before it, as processes that are killed and frozen.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url, shell, signal, succeeded};
use crate::shared::folder::TempFolder;
use serde_json::Value;
use std::io::BufReader;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A running `tidegate`. Killed at the end of its test.
struct Process {
    child: Child,
    banner: String,
}

impl Process {
    fn start(folder: &TempFolder, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        Self::spawn(command.args(args).current_dir(folder.path()).env_clear())
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let banner = banner(&mut BufReader::new(child.stdout.take().unwrap()));
        Self { child, banner }
    }

    fn admin(&self) -> String {
        banner_url(&self.banner, "operators")
    }

    fn workers(&self) -> String {
        banner_url(&self.banner, "workers").trim_end_matches(',').to_owned()
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn manager(folder: &TempFolder, workers: &str, lease_ms: u32) -> Process {
    let lease = format!("tasks.lease_ms={lease_ms}");
    Process::start(
        folder,
        &[
            "manager",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--workers-listen",
            workers,
            "--task-store",
            "tasks",
            "--set",
            "tasks.env_key_file=key",
            "--set",
            &lease,
        ],
    )
}

fn worker(folder: &TempFolder, manager: &str, name: &str) -> Process {
    let args = ["worker", "--manager", manager, "--executor-id", name, "--executor", "mock"];
    Process::start(folder, &args)
}

fn tidegate(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    succeeded(command.args(args).env_clear())
}

fn submit(admin: &str, code: &str) -> String {
    let id = tidegate(&["submit", "--admin", admin, "--runtime", "sh", "--code", code]);
    id.trim().to_owned()
}

/// Waits until a task satisfies a condition.
fn until(admin: &str, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let began = Instant::now();
    loop {
        let view = tidegate(&["status", "--admin", admin, id, "--json"]);
        let view: Value = serde_json::from_str(&view).unwrap();
        if wanted(&view) {
            return view;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{view}");
        sleep(Duration::from_millis(50));
    }
}

fn is_over(view: &Value) -> bool {
    !view["ended_ms"].is_null()
}

#[test]
fn the_command_of_the_banner_starts_a_worker_whose_tasks_report() {
    let folder = TempFolder::new("session-banner");
    let manager = manager(&folder, "127.0.0.1:0", 15_000);
    let printed = manager.banner.lines().map(str::trim);
    let line = printed.clone().find(|line| line.starts_with("tidegate worker")).unwrap();
    let line = format!("exec {line} --executor mock --executor-id w1");
    let worker = Process::spawn(&mut shell(&line, folder.path()));
    assert!(worker.banner.contains("connected to"), "{}", worker.banner);
    let code = "progress {\"counters\": {\"rows\": 7}, \"done\": 1, \"total\": 2}\nsleep 500ms";
    let id = submit(&manager.admin(), code);
    let followed = tidegate(&["status", "--admin", &manager.admin(), &id, "--follow"]);
    assert!(followed.contains("[#####-----] 1/2 50 %, rows 7"), "{followed}");
    assert!(followed.contains("succeeded"), "{followed}");
    let workers = tidegate(&["workers", "--admin", &manager.admin()]);
    assert!(workers.contains("w1") && workers.contains("connected"), "{workers}");
}

#[test]
fn a_gate_forwards_tasks_to_its_manager() {
    let folder = TempFolder::new("session-gate");
    let manager = manager(&folder, "127.0.0.1:0", 15_000);
    let _worker = worker(&folder, &manager.workers(), "w1");
    let behind = banner_url(&manager.banner, "clients");
    let ports = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let gate = Process::start(&folder, &[&["gate", "--manager", &behind][..], &ports].concat());
    let data = banner_url(&gate.banner, "clients");
    // The data port of a gate speaks the task API of its manager.
    let id = submit(&data, "print through");
    until(&data, &id, |view| view["status"] == "succeeded");
    assert_eq!(tidegate(&["logs", "--admin", &manager.admin(), &id]), "through\n");
}

#[test]
fn a_killed_manager_finds_the_executions_of_its_workers_again() {
    let folder = TempFolder::new("session-killed");
    let first = manager(&folder, "127.0.0.1:0", 15_000);
    let address = first.workers();
    let _worker = worker(&folder, &address, "w1");
    let id = submit(&first.admin(), "print a\nsleep 3s\nprint b");
    until(&first.admin(), &id, |view| view["status"] == "running");
    first.kill();
    let second = manager(&folder, &address, 15_000);
    let view = until(&second.admin(), &id, is_over);
    assert_eq!((&view["status"], &view["attempt"]), (&"succeeded".into(), &1.into()), "{view}");
    assert_eq!(tidegate(&["logs", "--admin", &second.admin(), &id]), "a\nb\n");
}

/// Killed, its processes and its connections are gone at once, and nothing says so to its manager.
#[test]
fn a_killed_worker_loses_its_task_which_ends_once_elsewhere_and_its_name_is_free_again() {
    let folder = TempFolder::new("session-worker-killed");
    let manager = manager(&folder, "127.0.0.1:0", 1_000);
    let killed = worker(&folder, &manager.workers(), "w1");
    let id = submit(&manager.admin(), "print x\nsleep 2s\nprint y");
    until(&manager.admin(), &id, |view| view["status"] == "running");
    killed.kill();
    let other = worker(&folder, &manager.workers(), "w2");
    let view = until(&manager.admin(), &id, is_over);
    let ended = (&view["status"], &view["executor"], &view["losses"], &view["attempt"]);
    assert_eq!(ended, (&"succeeded".into(), &"w2".into(), &1.into(), &2.into()), "{view}");
    let output = tidegate(&["logs", "--admin", &manager.admin(), &id]);
    assert!(output.ends_with("x\ny\n"), "{output}");
    drop(other);
    let _again = worker(&folder, &manager.workers(), "w1");
    let next = submit(&manager.admin(), "print z");
    assert_eq!(until(&manager.admin(), &next, is_over)["executor"], "w1");
}

#[test]
fn a_frozen_worker_loses_its_task_which_ends_once_elsewhere() {
    let folder = TempFolder::new("session-frozen");
    let manager = manager(&folder, "127.0.0.1:0", 1_000);
    let frozen = worker(&folder, &manager.workers(), "w1");
    let id = submit(&manager.admin(), "print x\nsleep 4s");
    until(&manager.admin(), &id, |view| view["status"] == "running");
    signal(&frozen.child, "-STOP");
    let _other = worker(&folder, &manager.workers(), "w2");
    let view = until(&manager.admin(), &id, is_over);
    signal(&frozen.child, "-CONT");
    let ended = (&view["status"], &view["executor"], &view["losses"]);
    assert_eq!(ended, (&"succeeded".into(), &"w2".into(), &1.into()), "{view}");
    // The worker that was frozen comes back, and changes nothing of the task.
    let began = Instant::now();
    while !tidegate(&["workers", "--admin", &manager.admin()])
        .lines()
        .any(|line| line.starts_with("w1") && line.contains("connected"))
    {
        assert!(began.elapsed() < Duration::from_secs(30));
        sleep(Duration::from_millis(50));
    }
    assert_eq!(until(&manager.admin(), &id, is_over), view);
}
