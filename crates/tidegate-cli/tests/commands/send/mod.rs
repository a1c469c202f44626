//! `tidegate send` as a process: what it sends, what it says, and how it ends.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod server;

use serde_json::Value;
use server::Server;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A file that goes with its test.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("tidegate-send-{}-{name}.lp", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Lines whose times are these.
fn lines(times: std::ops::Range<i64>) -> String {
    times.map(|time| format!("tokens,tenant=t{} value={time} {time}\n", time % 5)).collect()
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("send").args(args).env_clear();
    command
}

fn send(server: &Server, args: &[&str]) -> Output {
    command(&["--to", &server.address.to_string()]).args(args).output().unwrap()
}

fn send_stdin(server: &Server, args: &[&str], text: &str) -> Output {
    let mut command = command(&["-", "--to", &server.address.to_string()]);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Starts sending a file with the summary as JSON, and waits until the server has that many records.
fn start(server: &Server, file: &TestFile, records: usize) -> Child {
    let mut command = command(&[file.path(), "--to", &server.address.to_string(), "--batch", "10"]);
    command.args(["--json"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let began = Instant::now();
    while server.times().len() < records {
        assert!(began.elapsed() < Duration::from_secs(30), "nothing is stored");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

#[track_caller]
fn ended(output: &Output, code: i32, says: &[&str]) -> String {
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}{error}");
    let all = format!("{out}{error}");
    for part in says {
        assert!(all.contains(part), "{part:?} is not in: {all}");
    }
    out.into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_file_is_stored_and_sent_again_counts_once() {
    let (server, file) = (Server::start(), TestFile::new("again", &lines(0..5_000)));
    let first = send(&server, &[file.path()]);
    ended(&first, 0, &["5,000 records from", "acked", "stored by 127.0.0.1", "p99", "file/"]);
    let again = send(&server, &[file.path(), "--json"]);
    ended(&again, 0, &[]);
    let told = json(&again);
    assert_eq!(
        (&told["acked"], &told["repeated"], &told["complete"]),
        (&0.into(), &5_000.into(), &true.into())
    );
    assert_eq!(server.times(), (0..5_000).collect::<Vec<_>>());

    // A copy is the same file; under another name, or cut in another way, it is not.
    let copy = TestFile::new("copy", &lines(0..5_000));
    assert_eq!(json(&send(&server, &[copy.path(), "--json"]))["repeated"], 5_000);
    let named = json(&send(&server, &[file.path(), "--json", "--sender", "me"]));
    assert_eq!(named["acked"], 5_000);
    assert!(named["sender"].as_str().unwrap().starts_with("me/"), "{named}");
    assert_eq!(json(&send(&server, &[file.path(), "--json", "--batch", "99"]))["acked"], 5_000);
    assert_eq!((server.times().len(), server.senders().len()), (15_000, 3));
}

#[test]
fn what_was_killed_in_the_middle_is_resumed_without_counting_twice() {
    let server = Server::start_with(0, None);
    let file = TestFile::new("killed", &lines(0..2_005));
    for part in 1..=3 {
        server.let_store(5 * part);
        let mut child = start(&server, &file, 50 * part);
        // More is under way, which the server takes after the next has come.
        signal(&child, "-KILL");
        child.wait().unwrap();
    }
    assert_eq!(server.times().len(), 150);
    server.let_store(usize::MAX);
    let output = send(&server, &[file.path(), "--batch", "10", "--json"]);
    ended(&output, 0, &[]);
    assert_eq!(server.times(), (0..2_005).collect::<Vec<_>>());
    let told = json(&output);
    assert!(told["repeated"].as_u64().unwrap() >= 150, "{told}");
}

#[test]
fn an_interrupt_ends_it_in_order_and_what_is_left_is_sent_later() {
    for ending in ["-INT", "-TERM"] {
        let server = Server::start_with(5, None);
        let file = TestFile::new(ending, &lines(0..12_003));
        let mut child = start(&server, &file, 50);
        signal(&child, ending);
        // Only when it has heard it, what is under way goes on.
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("stopping") {
            assert_ne!(errors.read_line(&mut said).unwrap(), 0, "it ended at once: {said}");
        }
        server.let_store(usize::MAX);
        errors.read_to_string(&mut said).unwrap();
        let output = child.wait_with_output().unwrap();
        ended(&output, 1, &[]);
        assert!(said.contains("interrupted before all records were stored"), "{said}");
        let told = json(&output);
        let (acked, unacked) = (told["acked"].as_u64().unwrap(), told["unacked"].as_u64().unwrap());
        assert_eq!(acked as usize, server.times().len(), "what was under way has arrived");
        assert!(acked.is_multiple_of(10) && acked + unacked < 12_003, "no part of a batch: {told}");

        ended(&send(&server, &[file.path(), "--batch", "10", "--quiet"]), 0, &[]);
        assert_eq!(server.times(), (0..12_003).collect::<Vec<_>>());
    }
}

#[test]
fn wrong_lines_are_told_with_their_numbers_and_the_rest_is_sent() {
    let server = Server::start();
    let text = format!("{}wrong\n{}also,wrong\n{}", lines(0..10), lines(10..20), "x\n".repeat(30));
    let file = TestFile::new("wrong", &text);
    let output = send(&server, &[file.path()]);
    ended(
        &output,
        1,
        &["line 11, column", "line 22, column", "line 30,", "invalid lines", "of 52"],
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.lines().count(), 10, "{said}");
    assert_eq!(server.times(), (0..20).collect::<Vec<_>>());

    let strict = Server::start();
    ended(&send(&strict, &[file.path(), "--strict"]), 1, &["line 11, column", "nothing was sent"]);
    assert!(strict.senders().is_empty());
    let output = send_stdin(&strict, &["--strict"], &text);
    ended(&output, 1, &["line 11, column", "nothing after the invalid line was sent"]);
    assert_eq!(strict.times(), (0..10).collect::<Vec<_>>());
}

#[test]
fn standard_input_counts_each_time() {
    let server = Server::start();
    let text = lines(0..1_500);
    ended(&send_stdin(&server, &[], &text), 0, &["1,500 records from standard input", "stdin/"]);
    for _ in 0..2 {
        ended(&send_stdin(&server, &["--sender", "meter-7"], &text), 0, &["meter-7"]);
    }
    assert_eq!((server.times().len(), server.senders().len()), (4_500, 2));
    ended(&send_stdin(&server, &[], ""), 0, &["0 records"]);
}

#[test]
fn what_a_program_writes_now_and_then_is_sent_as_it_comes() {
    let server = Server::start();
    let mut command = command(&["-", "--to", &server.address.to_string(), "--quiet"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for count in 1..=3 {
        input.write_all(lines(count..count + 1).as_bytes()).unwrap();
        let began = Instant::now();
        while server.times().len() < count as usize {
            assert!(began.elapsed() < Duration::from_secs(20), "line {count} does not come");
            thread::sleep(Duration::from_millis(2));
        }
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_batch_that_is_refused_is_told_with_1() {
    let server = Server::start_with(usize::MAX, Some("t3"));
    let file = TestFile::new("refused", &lines(0..10));
    let output = send(&server, &[file.path(), "--batch", "1"]);
    ended(
        &output,
        1,
        &["batch 4 with 1 records was rejected: malformed: not from them", "rejected"],
    );
    assert_eq!(server.times(), [0, 1, 2, 4, 5, 6, 7, 9]);
}

#[test]
fn a_server_that_is_away_is_waited_for_as_long_as_was_said() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    drop(holder);
    let file = TestFile::new("away", &lines(0..10));
    let began = Instant::now();
    let output = command(&[file.path(), "--to", &address, "--timeout", "1"]).output().unwrap();
    assert!(began.elapsed() >= Duration::from_secs(1));
    let says = ["gave up", "stored nothing for 1 s", "can't connect to", "10  not acknowledged"];
    ended(&output, 1, &says);
}

#[test]
fn a_rate_is_kept() {
    let (server, file) = (Server::start(), TestFile::new("rate", &lines(0..1_000)));
    let told = json(&send(&server, &[file.path(), "--rate", "2000", "--json"]));
    assert!(told["seconds"].as_f64().unwrap() >= 0.45, "{told}");
    assert_eq!(server.times().len(), 1_000);
}

#[test]
fn what_was_typed_wrong_is_2() {
    let server = Server::start();
    ended(&send(&server, &["no-such-file.lp"]), 2, &["can't read no-such-file.lp"]);
    ended(&send(&server, &["."]), 2, &["it is a folder"]);
    ended(&send(&server, &["x.lp", "--batch", "0"]), 2, &["--batch"]);
    let long = "n".repeat(128);
    let file = TestFile::new("long", "");
    ended(&send(&server, &[file.path(), "--sender", &long]), 2, &["at most 95 bytes"]);
    ended(&command(&["--help"]).output().unwrap(), 0, &["Examples:", "does not count twice"]);
}
