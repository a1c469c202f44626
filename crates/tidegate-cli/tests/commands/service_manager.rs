//! Commands that serve, as a service manager runs them: they tell it when they are ready and when they stop, feed
//! its watchdog while they make progress, and are not ended by SIGHUP.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::signal;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Only ends a test that has failed.
const LONGEST: Duration = Duration::from_secs(60);

/// Silence of the watchdog that shows that it is not fed: six times the time between two meals.
const UNFED: Duration = Duration::from_secs(3);

/// A service manager: the socket that a command is given.
struct Manager {
    socket: UnixDatagram,
    name: String,
}

/// A command that ends with its test.
struct Served(Child);

fn new_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("notify-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn new_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(new_name());
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

// === impl Manager ===

impl Manager {
    /// One with a socket of the file system.
    fn start() -> Self {
        // The name of a socket has at most 107 bytes.
        let path = std::env::temp_dir().join(format!("tidegate-{}", new_name()));
        let _ = std::fs::remove_file(&path);
        Self { socket: UnixDatagram::bind(&path).unwrap(), name: path.display().to_string() }
    }

    /// One with an abstract socket.
    fn start_abstract() -> Self {
        let name = format!("tidegate-{}", new_name());
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        Self { socket: UnixDatagram::bind_addr(&address).unwrap(), name: format!("@{name}") }
    }

    /// The next message; `None` if none comes within this time.
    fn next(&self, within: Duration) -> Option<String> {
        self.socket.set_read_timeout(Some(within)).unwrap();
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }

    /// Waits for a message with this line.
    fn until(&self, line: &str) {
        let start = Instant::now();
        while start.elapsed() < LONGEST {
            let message = self.next(LONGEST).unwrap_or_default();
            if message.lines().any(|each| each == line) {
                return;
            }
        }
        panic!("never told {line}");
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.name);
    }
}

// === impl Served ===

impl Served {
    fn start(manager: &Manager, args: &[&str], folder: &Path) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(args)
            .env_clear()
            .env("HOME", folder)
            .env("NOTIFY_SOCKET", &manager.name)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Waits for a line of the log with this text.
    fn logs(&mut self, folder: &Path, text: &str) {
        let start = Instant::now();
        while !std::fs::read_to_string(folder.join("log")).unwrap().contains(text) {
            assert_eq!(self.0.try_wait().unwrap(), None, "it ended");
            assert!(start.elapsed() < LONGEST, "never logged: {text}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const UP: [&str; 6] =
    ["up", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--no-tasks"];
const INGEST: [&str; 7] = [
    "ingest",
    "--admin-listen",
    "127.0.0.1:0",
    "--frames-listen",
    "127.0.0.1:0",
    "--lines-listen",
    "127.0.0.1:0",
];
const WORKER: [&str; 5] = ["worker", "--listen", "127.0.0.1:0", "--executor", "mock"];

#[test]
fn the_manager_is_told_of_start_and_end_and_hangups_end_nothing() {
    let up = [&UP[..], &["--no-ingest"]].concat();
    for args in [&up[..], &INGEST, &WORKER] {
        let (manager, folder) = (Manager::start(), new_folder());
        let mut served = Served::start(&manager, args, &folder);
        manager.until("READY=1");
        for _ in 0..2 {
            signal(&served.0, "-HUP");
        }
        served.logs(&folder, "SIGHUP: still serving");
        signal(&served.0, "-TERM");
        manager.until("STOPPING=1");
        assert_eq!(served.0.wait().unwrap().code(), Some(0), "{args:?}");
    }
}

#[test]
fn an_abstract_socket_is_told_too() {
    let (manager, folder) = (Manager::start_abstract(), new_folder());
    let _served = Served::start(&manager, &WORKER, &folder);
    manager.until("READY=1");
}

#[test]
fn a_hangup_does_not_end_a_mock() {
    let (manager, folder) = (Manager::start(), new_folder());
    let mut served = Served::start(&manager, &["mock", "--listen", "127.0.0.1:0"], &folder);
    // It says nothing when it starts, and would be ended by a signal that comes too early.
    while !Path::new(&format!("/proc/{}/status", served.0.id())).exists() || !handles(&served.0) {
        assert_eq!(served.0.try_wait().unwrap(), None, "it ended");
    }
    signal(&served.0, "-HUP");
    served.logs(&folder, "SIGHUP: still serving");
}

/// Returns true once a process handles SIGHUP, the first signal.
fn handles(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(caught.trim(), 16).unwrap() & 1 != 0
}

#[test]
fn a_node_with_a_stuck_thread_does_not_feed_the_watchdog() {
    let (manager, folder) = (Manager::start(), new_folder());
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/hold_thread.py");
    let mut holder = Command::new("python3")
        .args([fixture, env!("CARGO_BIN_EXE_tidegate")])
        .args(UP)
        .args(["--no-ingest", "--threads", "2"])
        .env("HOME", &folder)
        .env("NOTIFY_SOCKET", &manager.name)
        .env("WATCHDOG_USEC", "1000000")
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 is needed for this test: install it, or run `make setup`");
    let mut commands = holder.stdin.take().unwrap();
    let mut answers = BufReader::new(holder.stderr.take().unwrap());
    let mut command = |text: &str| {
        commands.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        while answer.trim() != "done" {
            answer.clear();
            assert_ne!(answers.read_line(&mut answer).unwrap(), 0, "the holder ended");
        }
    };
    manager.until("READY=1");
    for thread in ["tidegate-1", "tidegate-control"] {
        manager.until("WATCHDOG=1");
        command(&format!("hold {thread}\n"));
        let start = Instant::now();
        while manager.next(UNFED).is_some() {
            assert!(start.elapsed() < LONGEST, "fed with {thread} stuck");
        }
        command("release\n");
        manager.until("WATCHDOG=1");
    }
    // The end of its input ends the program.
    drop(commands);
    let _ = answers.read_to_string(&mut String::new());
    assert!(holder.wait().unwrap().success());
}
