//! The state of `tidegate up`: its folder, its modes, and stores that an earlier version has left elsewhere.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url, curl, signal};
use std::io::{BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A running `tidegate up` in a folder of its own. Killed when its test ends.
struct Node {
    child: Child,
    out: BufReader<ChildStdout>,
    banner: String,
    folder: PathBuf,
}

fn new_folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("state-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

// === impl Node ===

impl Node {
    /// Starts one in this folder, with files that everybody may write unless the node takes care.
    fn start(folder: PathBuf, env: &[(&str, &Path)], args: &[&str]) -> Self {
        let mut child = Command::new("sh")
            .args(["-c", "umask 0; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_tidegate"), "up"])
            .args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--frames-listen", "127.0.0.1:0", "--lines-listen", "127.0.0.1:0"])
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .envs(env.iter().copied())
            .current_dir(&folder)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let banner = banner(&mut out);
        Self { child, out, banner, folder }
    }

    /// Ends it by SIGTERM, and waits.
    fn end(mut self) {
        signal(&self.child, "-TERM");
        let _ = self.out.read_to_string(&mut String::new());
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Every file and folder below this one, with its mode.
fn modes(folder: &Path, found: &mut Vec<(PathBuf, u32, bool)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        found.push((entry.path(), metadata.permissions().mode() & 0o777, metadata.is_dir()));
        if metadata.is_dir() {
            modes(&entry.path(), found);
        }
    }
}

#[test]
fn a_state_folder_that_can_not_be_used_is_told_with_its_flag() {
    let folder = new_folder();
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("file");
    std::fs::write(&file, "no folder").unwrap();
    for (on, off) in [("--tasks", "--ingest"), ("--ingest", "--tasks")] {
        let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["up", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--frames-listen", "127.0.0.1:0", "--lines-listen", "127.0.0.1:0"])
            .args(["--upstream", "http://127.0.0.1:9", on, off, "false"])
            .env_clear()
            .env("STATE_DIRECTORY", &file)
            .current_dir(&folder)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("choose another with --state-folder"), "{on}: {told}");
    }
}

#[test]
fn the_state_is_its_users_alone_and_tasks_keep_the_mask_of_the_caller() {
    let folder = new_folder();
    let state = folder.join("state");
    let node = Node::start(folder, &[("STATE_DIRECTORY", &state)], &[]);
    assert!(node.banner.contains(&format!("  state      {}", state.display())), "{}", node.banner);
    let admin = banner_url(&node.banner, "operators");
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["submit", "--admin", &admin, "--runtime", "sh", "--code", "umask", "--wait"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0000", "{output:?}");
    let example = node.banner.lines().find(|line| line.starts_with("  tidegate submit")).unwrap();
    let example = example.replacen("tidegate", env!("CARGO_BIN_EXE_tidegate"), 1);
    let output = Command::new("sh").args(["-c", &example]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "hello", "{example}: {output:?}");
    let lines = node.banner.lines().find(|line| line.starts_with("  lines")).unwrap();
    let address = lines.split_whitespace().nth(1).unwrap();
    let mut sender = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut sender, b"tokens,tenant=acme output=1i\n").unwrap();
    drop(sender);
    let start = Instant::now();
    while !curl(&[&format!("{admin}/v1/usage")]).contains("acme") {
        assert!(start.elapsed() < Duration::from_secs(60), "the record is never stored");
    }
    let mut found = Vec::new();
    modes(&state, &mut found);
    for store in ["usage", "tasks"] {
        let files = found
            .iter()
            .filter(|(path, _, is_folder)| !is_folder && path.starts_with(state.join(store)));
        assert!(files.count() > 3, "{found:?}");
    }
    for (path, mode, is_folder) in &found {
        let expected = if *is_folder { 0o700 } else { 0o600 };
        assert_eq!(mode & 0o077, 0, "{} is {mode:o}", path.display());
        assert_eq!(mode & 0o600, expected & 0o600, "{} is {mode:o}", path.display());
    }
    node.end();
}

#[test]
fn stores_of_an_earlier_version_are_not_passed_over_in_silence() {
    let folder = new_folder();
    // Nothing names a state folder: as earlier versions, it stores in the working directory.
    let mock = ["--set", "tasks.executor=mock"];
    let earlier = Node::start(folder.clone(), &[], &mock);
    assert!(earlier.banner.contains("  state      the working directory"), "{}", earlier.banner);
    earlier.end();
    let home = folder.join("home");
    let node = Node::start(folder.clone(), &[("HOME", &home)], &mock);
    let state = home.join(".local/state/tidegate");
    for (store, now, flag) in [
        ("tidegate-data", state.join("usage"), "--store tidegate-data"),
        ("tidegate-tasks", state.join("tasks"), "--task-store tidegate-tasks"),
    ] {
        let line = format!("./{store} of an earlier version is NOT used");
        for text in [&node.banner, &node.log()] {
            let line =
                text.lines().find(|text| text.contains(&line)).unwrap_or_else(|| panic!("{text}"));
            assert!(line.contains(&now.display().to_string()) && line.contains(flag), "{line}");
        }
    }
    node.end();
    // Once the new ones exist, and when the old ones are named, nothing is left to say.
    let again = Node::start(folder.clone(), &[("HOME", &home)], &mock);
    assert!(!again.banner.contains("earlier version"), "{}", again.banner);
    again.end();
    let named = ["--store", "tidegate-data", "--task-store", "tidegate-tasks"];
    let named = Node::start(folder, &[("HOME", &home)], &[&mock[..], &named].concat());
    assert!(!named.banner.contains("earlier version"), "{}", named.banner);
    named.end();
}
