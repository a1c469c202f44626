//! `tidegate worker` as a process: asked by curl and by a Python program that was written from the document on
//! executor capacity alone, and ended by signals.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{
    banner, banner_url, commands_to_try, curl, refused, shell, signal, succeeded,
};
use std::io::{BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, ChildStderr, Command, Stdio};

/// A running `tidegate worker` on a free port. Killed if its test fails.
struct Worker {
    child: Child,
    errors: ChildStderr,
    banner: String,
    url: String,
}

impl Worker {
    fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    fn start_with(args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut child = command(&["--listen", "127.0.0.1:0"])
            .args(args)
            .envs(env.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let banner = banner(&mut out);
        let url = banner_url(&banner, "clients");
        let errors = child.stderr.take().unwrap();
        Self { child, errors, banner, url }
    }

    /// Exit code and log after this signal.
    fn ends_by(mut self, name: &str) -> (Option<i32>, String) {
        signal(&self.child, name);
        let code = self.child.wait().unwrap().code();
        let mut log = String::new();
        self.errors.read_to_string(&mut log).unwrap();
        (code, log)
    }

    fn get(&self, path: &str) -> String {
        curl(&[&format!("{}{path}", self.url)])
    }

    fn execute(&self, body: &str) -> String {
        curl(&["-d", body, &format!("{}/execute", self.url)])
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("worker").args(args).env_clear();
    command
}

/// Debian's own Python: whichever comes first on the PATH may not have the package.
#[test]
fn a_program_from_the_document_alone_works() {
    let workers: Vec<_> = (0..3).map(|_| Worker::start(&["--executor", "mock"])).collect();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/seed_client.py");
    let output = Command::new("/usr/bin/python3")
        .arg(fixture)
        .args(workers.iter().map(|worker| &worker.url))
        .output()
        .expect("Debian's python3 is needed for this test: install it, or run `make setup`");
    let (said, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        !error.contains("No module named 'httpx'"),
        "Debian's package `python3-httpx` is needed for this test: install it, or run `make setup`"
    );
    assert!(output.status.success(), "{said}{error}");
    for what in ["the_race", "optimistic", "the_loop", "the_reservation"] {
        assert!(said.contains(&format!("\"what\": \"{what}\"")), "{what} is not in: {said}");
    }
    for worker in workers {
        assert_eq!(worker.ends_by("-TERM").0, Some(0));
    }
}

#[test]
fn everything_that_it_says_to_try_works() {
    let worker = Worker::start(&["--executor", "mock", "--max-concurrent", "3"]);
    assert!(worker.banner.contains("slots      3"), "{}", worker.banner);
    assert!(worker.banner.contains("sandbox"), "{}", worker.banner);
    let lines: Vec<_> =
        worker.banner.lines().filter(|line| line.trim_start().starts_with("curl")).collect();
    let said: Vec<_> = lines
        .iter()
        .map(|line| Command::new("sh").args(["-c", line.trim()]).output().unwrap().stdout)
        .map(|stdout| String::from_utf8(stdout).unwrap())
        .collect();
    assert!(said[0].contains("\"available_slots\":3"), "{}", said[0]);
    assert!(said[1].contains("\"container_id\":\"one@1\""), "{}", said[1]);
    assert!(said[2].contains("\"eval_id\":\"one\""), "{}", said[2]);
    assert_eq!(worker.ends_by("-INT").0, Some(0));
}

/// With each kind of executor and default runtime, its own words are a program that runs.
#[test]
fn the_code_that_it_says_to_try_runs() {
    let path = std::env::var("PATH").unwrap();
    let only_sh = ["--runtime", "sh"];
    for args in [&["--executor", "mock"][..], &[], &only_sh] {
        let worker = Worker::start_with(args, &[("PATH", &path)]);
        let lines = worker.banner.lines().filter(|line| line.trim_start().starts_with("curl"));
        for line in lines {
            let line = line.replace("wait_ms=1000", "wait_ms=30000");
            assert!(Command::new("sh").args(["-c", line.trim()]).status().unwrap().success());
        }
        let mut view = worker.get("/executions/one?wait_ms=30000");
        for _ in 0..100 {
            if view.contains("succeeded") || view.contains("failed") {
                break;
            }
            view = worker.get("/executions/one?wait_ms=1000");
        }
        assert!(
            view.contains("\"state\":\"succeeded\"") && view.contains("42"),
            "{args:?}: {view}"
        );
    }
}

#[test]
fn what_it_says_to_try_works_with_a_token() {
    let token = [("TIDEGATE_WORKER_TOKEN", "tg_worker-0123456789")];
    let worker = Worker::start_with(&["--executor", "mock"], &token);
    let lines = commands_to_try(&worker.banner);
    assert_eq!(lines.len(), 3, "{}", worker.banner);
    let folder = std::env::temp_dir();
    for line in &lines {
        succeeded(shell(line, &folder).envs(token));
        assert!(!shell(line, &folder).output().unwrap().status.success(), "no token: {line}");
    }
    assert!(!worker.banner.contains(token[0].1), "the token itself is not shown");
}

#[test]
fn a_signal_lets_what_runs_finish_and_stops_what_does_not() {
    let worker = Worker::start(&["--executor", "mock"]);
    worker.execute(r#"{"eval_id": "a", "code": "sleep 300ms"}"#);
    let (code, log) = worker.ends_by("-TERM");
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("all executions have finished"), "{log}");
    let worker = Worker::start(&["--executor", "mock", "--grace-ms", "50"]);
    worker.execute(r#"{"eval_id": "a", "code": "hang"}"#);
    let (code, log) = worker.ends_by("-TERM");
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("were stopped"), "{log}");
}

#[test]
fn the_flags_and_the_environment_reach_the_executor() {
    let env = [("MAX_CONCURRENT_EXECUTIONS", "5")];
    let worker = Worker::start_with(&["--executor", "mock", "--executor-id", "mine"], &env);
    let capacity = worker.get("/capacity");
    assert!(capacity.contains("\"max_concurrent\":5"), "{capacity}");
    assert!(capacity.contains("\"executor_id\":\"mine\""), "{capacity}");
    let args = ["--executor", "mock", "--max-concurrent", "2", "--runtime", "python"];
    let worker = Worker::start_with(&args, &env);
    let capacity = worker.get("/capacity");
    assert!(capacity.contains("\"max_concurrent\":2"), "a flag wins: {capacity}");
    let refused = worker.execute(r#"{"eval_id": "a", "code": "1", "language": "perl"}"#);
    assert!(refused.contains("unknown_runtime"), "{refused}");
    let behind = Worker::start(&["--executor", "http", "--target", &worker.url]);
    assert!(behind.get("/capacity").contains("\"kind\":\"http\""));
}

#[test]
fn wrong_flags_are_told_all_at_once_with_2() {
    let args = ["--listen", "0.0.0.0:0", "--executor-id", "a b", "--max-concurrent", "0"];
    let says = [
        "4 errors",
        "--listen: given 0.0.0.0:0; allowed: a loopback address without TLS: give --tls-cert",
        "--listen: given 0.0.0.0:0; allowed: a loopback address while every caller can run code",
        "--executor-id",
        "1 … 65536",
    ];
    refused(&command(&args).output().unwrap(), 2, &says);
    refused(&command(&["--executor", "http"]).output().unwrap(), 2, &["--target"]);
    let target = ["--executor", "http", "--target", "nowhere"];
    refused(&command(&target).output().unwrap(), 2, &["--target: given \"nowhere\"", "http"]);
    refused(&command(&["--executor", "magic"]).output().unwrap(), 2, &["mock"]);
    let env = command(&[]).env("MAX_CONCURRENT_EXECUTIONS", "many").output().unwrap();
    refused(&env, 2, &["many"]);
}

#[test]
fn a_port_that_is_taken_is_1() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let output = command(&["--listen", &taken]).output().unwrap();
    refused(&output, 1, &[&format!("can't listen on {taken}"), "--listen"]);
}
