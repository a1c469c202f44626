//! A task with network on a real `tidegate up`: it reaches none of the node's ports.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url};
use crate::shared::folder::TempFolder;
use std::io::BufReader;
use std::process::{Command, Stdio};

const RUNTIME: &str = "[[runtime]]\nname = \"online\"\ncommand = \"/usr/bin/python3\"\n\
                       extension = \"py\"\nnetwork = \"allow\"\n";

/// Asks each port for all tasks, as their operators would.
const CODE: &str = "
import sys, urllib.request
for url in sys.argv[1:]:
    try: print(urllib.request.urlopen(url + '/v1/tasks', timeout=9).read())
    except OSError as e: print(getattr(e, 'reason', e))
";

#[test]
fn a_task_cannot_ask_the_admin_port_for_the_tasks_of_others() {
    let folder = TempFolder::new("own-ports");
    std::fs::write(folder.path().join("tidegate.toml"), RUNTIME).unwrap();
    let mut node = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["up", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--no-ingest"])
        .args(["--task-slots", "1", "--task-store", "tasks", "--set", "tasks.env_key_file=key"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let text = banner(&mut BufReader::new(node.stdout.take().unwrap()));
    assert!(text.contains("node_ports active"), "this test needs Landlock with ABI 4: {text}");
    let (data, admin) = (banner_url(&text, "clients"), banner_url(&text, "operators"));
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["submit", "--admin", &admin, "--runtime", "online", "--code", CODE, "--wait", "--"])
        .args([&data, &admin])
        .output()
        .unwrap();
    let _ = node.kill();
    let _ = node.wait();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.matches("Permission denied").count(), 2, "{output:?}");
    assert!(!said.contains("tasks"), "{said}");
}
