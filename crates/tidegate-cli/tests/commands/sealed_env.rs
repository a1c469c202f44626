//! Environments of tasks at rest, with a real `tidegate up`, a folder and a PostgreSQL: their values are on no
//! disk, and reach their task all the same.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url, signal};
use crate::shared::folder::TempFolder;
use crate::shared::postgres::Postgres;
use std::io::{BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

const SECRET: &str = "hunter2-that-is-on-no-disk";
/// Stands in the code of a task: found wherever the store is not encrypted, it shows that the search finds things.
const MARKER: &str = "marker-of-the-code";

/// A running `tidegate up`. Killed if its test fails.
struct Node {
    child: Child,
    out: BufReader<ChildStdout>,
    banner: String,
    admin: String,
}

// === impl Node ===

impl Node {
    fn start(folder: &Path, store: &str, slots: u32, key: &str) -> Self {
        let log = std::fs::File::options().create(true).append(true).open(folder.join("log"));
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["up", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--no-ingest", "--task-store", store, "--log-level", "debug"])
            .args(["--task-slots", &slots.to_string()])
            .args(["--set", &format!("tasks.env_key_file={key}")])
            .args(["--set", "tasks.node=manager", "--set", "tasks.lease_ms=1000"])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .stderr(log.unwrap())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let banner = banner(&mut out);
        let admin = banner_url(&banner, "operators");
        Self { child, out, banner, admin }
    }

    /// Exit code and output of a command at this node.
    fn run(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(&args[..1])
            .args(["--admin", &self.admin])
            .args(&args[1..])
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    fn submit(&self, id: &str, wait: &[&str]) -> (Option<i32>, String) {
        // What a task writes is stored: it tells that it has the secret in other letters.
        let code = format!("echo got $(echo $PASSWORD | tr a-z b-za) # {MARKER}");
        let env = format!("PASSWORD={SECRET}");
        let args = ["submit", "--runtime", "sh", "--id", id, "--code", &code, "--env", &env];
        self.run(&[&args[..], wait].concat())
    }

    fn end(mut self) {
        signal(&self.child, "-TERM");
        let _ = self.out.read_to_string(&mut String::new());
        self.child.wait().unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Output of a task that has the secret.
fn got() -> String {
    let next = |c: char| match c {
        'z' => 'a',
        'a'..='y' => char::from(c as u8 + 1),
        other => other,
    };
    format!("got {}\n", SECRET.chars().map(next).collect::<String>())
}

/// Counts the files below a folder that have this text in them.
fn files_with(folder: &Path, text: &str) -> usize {
    let found =
        Command::new("grep").args(["-r", "-l", "-a", "-F", "--", text]).arg(folder).output();
    String::from_utf8_lossy(&found.unwrap().stdout).lines().count()
}

/// Tries everything with a store, whose files are in `data`.
fn try_store(folder: &Path, store: &str, data: &Path) {
    let node = Node::start(folder, store, 1, "one.key");
    let ran = node.submit("ran", &["--wait"]);
    assert_eq!(ran, (Some(0), got()));
    // The same again is the same task; other values are another one.
    assert_eq!(node.submit("ran", &[]).0, Some(0));
    let (code, other) = node.run(&[
        "submit",
        "--runtime",
        "sh",
        "--id",
        "ran",
        "--code",
        "x",
        "--env",
        "PASSWORD=y",
    ]);
    assert!(code != Some(0) && other.contains("ran"), "{other}");
    node.end();
    // Tasks that wait are read by the next process, with its key.
    let node = Node::start(folder, store, 0, "one.key");
    assert_eq!(node.submit("waits", &[]).0, Some(0));
    node.end();
    let node = Node::start(folder, store, 1, "one.key");
    let (_, followed) = node.run(&["logs", "waits", "--follow"]);
    assert!(followed.contains(&got()), "{followed}");
    node.end();
    let node = Node::start(folder, store, 0, "one.key");
    assert_eq!(node.submit("sealed", &[]).0, Some(0));
    node.end();
    // A key that is lost, or another one, is told at the start, while the task still waits; its own is not.
    let node = Node::start(folder, store, 0, "one.key");
    assert!(!node.banner.contains("WARNING"), "{}", node.banner);
    node.end();
    let node = Node::start(folder, store, 0, "other.key");
    let lost = "1 queued tasks have an env sealed with the key ";
    assert!(node.banner.contains(lost) && node.banner.contains("restore"), "{}", node.banner);
    assert_eq!(files_with(&folder.join("log"), lost), 1, "in the log too");
    node.end();
    let node = Node::start(folder, store, 1, "other.key");
    node.run(&["logs", "sealed", "--follow"]);
    let (_, status) = node.run(&["status", "sealed"]);
    assert!(status.contains("failed") && status.contains("refused"), "{status}");
    assert!(status.contains("env_key_file") && !status.contains(SECRET), "{status}");
    // One that can't be opened takes nothing else with it.
    assert_eq!(node.submit("after", &["--wait"]), (Some(0), got()));
    node.end();
    assert!(files_with(data, MARKER) > 0, "the search finds what is there");
    assert_eq!(files_with(data, SECRET), 0, "no file of the store has the value");
    assert_eq!(files_with(folder, SECRET), 0, "nor has the log or the key");
}

#[test]
fn a_folder_has_no_values() {
    let folder = TempFolder::new("sealed");
    let store = folder.path().join("tasks");
    try_store(folder.path(), store.to_str().unwrap(), &store);
}

#[test]
fn a_database_has_no_values() {
    let folder = TempFolder::new("sealed");
    let server = Postgres::start(&["fsync=off", "synchronous_commit=off"]);
    try_store(folder.path(), &server.url("schema=sealed"), server.folder());
}
