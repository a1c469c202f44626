//! Tasks from the command line, on a real `tidegate up`: submitted, followed, listed, stopped.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url, quoted_commands, shell, succeeded};
use serde_json::Value;
use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Only ends a test that has failed; none is judged by it.
const LONGEST: Duration = Duration::from_secs(60);

/// A running `tidegate up` with a folder of its own. Killed when its test ends.
struct Node {
    child: Child,
    folder: PathBuf,
    admin: String,
}

/// Exit code and output of a command.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

// === impl Node ===

impl Node {
    fn start() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("tasks-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let set = |key: &str, value: &Path| format!("{key}={}", value.display());
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["up", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--ingest", "false", "--set", "tasks.slots=2"])
            .args(["--set", &set("tasks.store", &folder.join("store"))])
            // The key of environments is a part of the state.
            .env("XDG_STATE_HOME", &folder)
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let admin = banner_url(&banner(&mut out), "operators");
        Self { child, folder, admin }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(&args[..1]).args(["--admin", &self.admin]).args(&args[1..]);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        Said::of(self.command(args).output().unwrap())
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }

    /// Everything about a task.
    fn task(&self, id: &str) -> Value {
        serde_json::from_str(&self.run(&["status", id, "--json"]).out).unwrap()
    }

    /// Waits until a task is in this status.
    fn until(&self, id: &str, status: &str) {
        let since = Instant::now();
        while self.task(id)["status"] != status {
            assert!(since.elapsed() < LONGEST, "{id} is never {status}: {}", self.task(id));
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// === impl Said ===

impl Said {
    fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

#[test]
fn a_program_runs_and_its_output_and_exit_code_are_the_commands() {
    let node = Node::start();
    node.file("hello.py", "import sys\nprint('hello', *sys.argv[1:])\n");
    let hello =
        node.run(&["submit", "--runtime", "python", "hello.py", "--wait", "--", "a b", "-c"]);
    assert_eq!((hello.code, &*hello.out), (Some(0), "hello a b -c\n"), "{}", hello.err);
    let code = "echo out; echo err >&2; exit 7";
    let failed = node.run(&["submit", "--runtime", "sh", "--code", code, "--wait"]);
    assert_eq!((failed.code, &*failed.out), (Some(7), "out\n"), "{}", failed.err);
    assert!(
        failed.err.starts_with("err\n") && failed.err.contains("failed: exit 7"),
        "{}",
        failed.err
    );
    node.file("greet.sh", "echo \"hi $WHO\"");
    let json = node.run(&["submit", "greet.sh", "--env", "WHO=you", "--wait", "--json"]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (json["stdout"].as_str(), json["status"].as_str()),
        (Some("hi you\n"), Some("succeeded"))
    );
}

#[test]
fn code_can_come_by_standard_input() {
    let node = Node::start();
    let mut child = node
        .command(&["submit", "--runtime", "sh", "-", "--wait"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"echo piped").unwrap();
    let said = Said::of(child.wait_with_output().unwrap());
    assert_eq!((said.code, &*said.out), (Some(0), "piped\n"));
}

#[test]
fn a_task_is_told_of_by_every_command() {
    let node = Node::start();
    let submit = [
        "submit",
        "--runtime",
        "sh",
        "--code",
        "echo one; echo two >&2",
        "--id",
        "n-1",
        "--priority",
        "low",
    ];
    let submitted = node.run(&submit);
    assert_eq!((submitted.code, &*submitted.out), (Some(0), "n-1\n"), "{}", submitted.err);
    node.until("n-1", "succeeded");
    let status = node.run(&["status", "n-1"]).out;
    for told in ["succeeded after", "runtime", "low", "submitted", "ago"] {
        assert!(status.contains(told), "{told}: {status}");
    }
    let logs = node.run(&["logs", "n-1"]);
    assert_eq!((&*logs.out, &*logs.err), ("one\n", "two\n"));
    let logs = node.run(&["logs", "n-1", "--stderr", "--follow"]);
    assert_eq!((logs.code, &*logs.out), (Some(0), "two\n"));
    let tasks = node.run(&["tasks", "--status", "succeeded"]).out;
    assert!(tasks.starts_with("ID") && tasks.contains("n-1"), "{tasks}");
    assert_eq!(node.run(&["tasks", "--status", "queued"]).out, "no tasks\n");
    let overview = node.run(&["status"]).out;
    assert!(overview.contains("1 succeeded") && overview.contains("0 of 2 in use"), "{overview}");
}

#[test]
fn the_same_key_is_the_same_task_and_another_under_it_is_refused() {
    let node = Node::start();
    let submit = |code| node.run(&["submit", "--runtime", "sh", "--code", code, "--key", "k"]);
    let (first, again, other) = (submit("true"), submit("true"), submit("false"));
    assert_eq!((first.code, &first.out), (Some(0), &again.out), "{}", again.err);
    assert_eq!(other.code, Some(1));
    assert!(other.err.contains("this idempotency key belongs to another task"), "{}", other.err);
}

#[test]
fn what_can_not_be_done_is_told_with_what_can() {
    let node = Node::start();
    let unknown = node.run(&["submit", "--runtime", "cobol", "--code", "x"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.err.contains("no executor has the runtime \"cobol\"; available:"),
        "{}",
        unknown.err
    );
    for missing in [&["status", "none"][..], &["logs", "none", "--follow"], &["cancel", "none"]] {
        let said = node.run(missing);
        assert_eq!(said.code, Some(1), "{missing:?}");
        assert!(said.err.contains("there is no task none"), "{missing:?}: {}", said.err);
    }
    assert_eq!(node.run(&["status", "a b"]).code, Some(2));
    let nobody = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["submit", "--admin", "127.0.0.1:1", "--runtime", "sh", "--code", "x"])
        .output();
    let nobody = Said::of(nobody.unwrap());
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.err.contains("no node responds at 127.0.0.1:1"), "{}", nobody.err);
}

#[test]
fn a_running_task_is_stopped_and_who_waits_for_it_is_told() {
    let node = Node::start();
    let waiting = node
        .command(&[
            "submit",
            "--id",
            "long",
            "--runtime",
            "sh",
            "--code",
            "echo up; sleep 300",
            "--wait",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let since = Instant::now();
    while node.run(&["logs", "long"]).out != "up\n" {
        assert!(since.elapsed() < LONGEST, "it never runs");
        thread::sleep(Duration::from_millis(20));
    }
    let cancelled = node.run(&["cancel", "long"]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.err);
    let said = Said::of(waiting.wait_with_output().unwrap());
    assert_eq!((said.code, &*said.out), (Some(1), "up\n"), "{}", said.err);
    assert!(said.err.contains("task long was cancelled"), "{}", said.err);
    assert_eq!(node.run(&["cancel", "long"]).code, Some(0), "twice is once");
}

#[test]
fn an_interrupt_ends_the_waiting_and_not_the_task() {
    let node = Node::start();
    let mut waiting = node
        .command(&[
            "submit",
            "--id",
            "w",
            "--runtime",
            "sh",
            "--code",
            "echo up; sleep 300",
            "--wait",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut up = [0; 3];
    waiting.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
    let kill = Command::new("kill").args(["-INT", &waiting.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let said = Said::of(waiting.wait_with_output().unwrap());
    assert_eq!(said.code, Some(130));
    assert!(said.err.contains("continues"), "{}", said.err);
    assert_eq!(node.task("w")["ended_ms"], Value::Null);
    // What it says works, on this node.
    let advised = quoted_commands(&said.err);
    assert_eq!(advised.len(), 2, "{}", said.err);
    let mut logs = shell(&advised[0], &node.folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut up = [0; 3];
    logs.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
    assert_eq!(&up, b"up\n", "{advised:?}");
    succeeded(&mut shell(&advised[1], &node.folder));
    node.until("w", "cancelled");
    assert!(logs.wait().unwrap().success(), "it follows to the end");
}

#[test]
fn a_connection_that_breaks_again_and_again_costs_no_line() {
    let node = Node::start();
    let target = node.admin.trim_start_matches("http://").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let through = listener.local_addr().unwrap().to_string();
    let cuts = cut_each_connection(listener, target);
    let code = "for i in $(seq 40); do echo $i; echo e$i >&2; sleep 0.05; done";
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["submit", "--admin", &through, "--runtime", "sh", "--code", code, "--wait"]);
    let said = Said::of(command.output().unwrap());
    let expected: String = (1..=40).map(|i| format!("{i}\n")).collect();
    assert_eq!((said.code, said.out), (Some(0), expected), "{}", said.err);
    let err: Vec<_> = said.err.lines().filter(|line| line.starts_with('e')).collect();
    assert_eq!(err.len(), 40, "{}", said.err);
    assert!(cuts() > 1, "it was never cut");
}

/// Passes connections on, and cuts each one after some bytes of its answer; says how many there were.
fn cut_each_connection(listener: TcpListener, target: String) -> impl Fn() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, target) = (client.unwrap(), target.clone());
            COUNT.fetch_add(1, Ordering::Relaxed);
            thread::spawn(move || {
                let mut server = TcpStream::connect(target).unwrap();
                let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || std::io::copy(&mut from, &mut to));
                // More than an answer to a submission, and less than this task's events.
                let _ = std::io::copy(&mut (&mut server).take(3_000), &mut client);
                let _ = client.shutdown(std::net::Shutdown::Both);
                let _ = server.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    || COUNT.load(Ordering::Relaxed)
}

#[test]
fn a_task_that_fails_is_tried_again_and_leaves_as_its_last_attempt_did() {
    let node = Node::start();
    let flags =
        ["submit", "--runtime", "sh", "--code", "echo try; exit 3", "--retries", "1", "--wait"];
    let said = node.run(&flags);
    assert_eq!((said.code, &*said.out), (Some(3), "try\ntry\n"), "{}", said.err);
    assert!(said.err.contains("failed in 2 attempts: exit 3"), "{}", said.err);
}
