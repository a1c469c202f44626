//! A cluster of processes: made, joined, killed, frozen and cut.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url, signal};
use crate::shared::folder::TempFolder;
use serde_json::Value;
use std::io::BufReader;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

/// A running `tidegate`. Killed at the end of its test.
struct Process {
    child: Child,
    banner: String,
}

/// A cluster of a manager, two workers and a gate in one folder, each with a state folder of its own.
struct Cluster {
    folder: TempFolder,
    manager: Process,
    w1: Option<Process>,
    _w2: Process,
    gate: Process,
}

fn command(folder: &TempFolder, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(args).current_dir(folder.path()).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Output of a command, and whether it succeeded.
fn run(folder: &TempFolder, args: &[&str]) -> (bool, String) {
    let output = command(folder, args).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[track_caller]
fn succeeded(folder: &TempFolder, args: &[&str]) -> String {
    let (is_ok, text) = run(folder, args);
    assert!(is_ok, "{args:?}: {text}");
    text
}

fn free_udp() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[track_caller]
fn within(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < limit, "{what}: not within {limit:?}");
        sleep(Duration::from_millis(50));
    }
}

impl Process {
    fn start(folder: &TempFolder, args: &[&str]) -> Self {
        let mut command = command(folder, args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let banner = banner(&mut BufReader::new(child.stdout.take().unwrap()));
        Self { child, banner }
    }

    fn admin(&self) -> String {
        banner_url(&self.banner, "operators")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The arguments of the command that a text says to run.
fn join_args<'a>(text: &'a str, role: &str) -> &'a str {
    let line =
        text.lines().find(|line| line.contains(&format!("tidegate {role} --join "))).unwrap();
    line.split_whitespace().last().unwrap()
}

impl Cluster {
    /// Starts all by the commands that are printed. `w1_udp` are further flags of the first worker.
    fn start(w1_flags: &[&str]) -> Self {
        let folder = TempFolder::new("cluster");
        // The port is printed before the manager listens on it.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (port, udp) = (port.to_string(), free_udp().to_string());
        let init = ["cluster", "init", "--state-folder", "m", "--node", "m1", "--port", &port];
        let made = succeeded(&folder, &[&init[..], &["--udp", &udp]].concat());
        let free = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
        let manager = Process::start(
            &folder,
            &[&["manager", "--state-folder", "m", "--set", "tasks.lease_ms=15000"][..], &free]
                .concat(),
        );
        let worker = |name: &str, more: &[&str]| {
            let join = join_args(&made, "worker");
            let args = ["worker", "--state-folder", name, "--node", name, "--join", join];
            Process::start(&folder, &[&args[..], &["--executor", "mock"], more].concat())
        };
        let (udp1, udp2) = (free_udp().to_string(), free_udp().to_string());
        let own = if w1_flags.is_empty() { &["--udp", udp1.as_str()][..] } else { w1_flags };
        let (w1, w2) = (worker("w1", own), worker("w2", &["--udp", &udp2]));
        let (join, udp) = (join_args(&made, "gate"), free_udp().to_string());
        let args = ["gate", "--state-folder", "g", "--node", "g1", "--join", join, "--udp", &udp];
        let gate = Process::start(&folder, &[&args[..], &free].concat());
        let cluster = Self { folder, manager, w1: Some(w1), _w2: w2, gate };
        within("all know all", LIMIT, || {
            [&cluster.manager, &cluster.gate].iter().all(|process| {
                let members = cluster.members(process);
                let members = members["members"].as_array().unwrap();
                members.len() == 4 && members.iter().all(|member| member["state"] == "alive")
            })
        });
        cluster
    }

    fn members(&self, process: &Process) -> Value {
        let text = succeeded(&self.folder, &["members", "--json", "--admin", &process.admin()]);
        serde_json::from_str(&text).unwrap()
    }

    fn member(&self, process: &Process, name: &str) -> Value {
        let members = self.members(process);
        let members = members["members"].as_array().unwrap();
        members.iter().find(|member| member["node"] == name).cloned().unwrap_or_default()
    }

    fn submit(&self, process: &Process, code: &str) -> String {
        let admin = process.admin();
        let args = ["submit", "--admin", &admin, "--runtime", "mock", "--code", code];
        succeeded(&self.folder, &args).trim().to_owned()
    }

    fn task(&self, id: &str) -> Value {
        let admin = self.manager.admin();
        let text = succeeded(&self.folder, &["status", "--json", "--admin", &admin, id]);
        serde_json::from_str(&text).unwrap()
    }
}

#[test]
fn a_cluster_is_made_by_the_printed_commands_and_starts_again_without_tokens() {
    let mut cluster = Cluster::start(&[]);
    // A client at the gate reaches a worker.
    let clients = banner_url(&cluster.gate.banner, "clients");
    let args = ["submit", "--admin", &clients, "--runtime", "mock", "--code", "print 42", "--wait"];
    assert_eq!(succeeded(&cluster.folder, &args), "42\n");
    let seen = cluster.member(&cluster.gate, "w1");
    assert_eq!((seen["role"].as_str(), seen["cell"].as_str()), (Some("worker"), Some("main")));
    assert_eq!(seen["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(cluster.member(&cluster.manager, "w1")["slots"], 1, "its load");
    let generation = seen["generation"].as_u64().unwrap();
    drop(cluster.w1.take());
    let args = ["worker", "--state-folder", "w1", "--executor", "mock"];
    cluster.w1 = Some(Process::start(&cluster.folder, &args));
    within("it is back", LIMIT, || {
        let member = cluster.member(&cluster.gate, "w1");
        member["state"] == "alive" && member["generation"].as_u64().unwrap() > generation
    });
}

#[test]
fn a_drained_worker_gets_nothing_also_after_a_restart_of_the_manager() {
    let mut cluster = Cluster::start(&[]);
    let admin = cluster.manager.admin();
    succeeded(&cluster.folder, &["drain", "w1", "--admin", &admin]);
    within("all know", Duration::from_secs(2), || {
        cluster.member(&cluster.gate, "w1")["draining"] == true
    });
    let executors = |cluster: &Cluster| -> Vec<String> {
        let ids: Vec<_> = (0..6).map(|_| cluster.submit(&cluster.manager, "print 1")).collect();
        let over = |id: &String| {
            within("it ends", LIMIT, || cluster.task(id)["status"] == "succeeded");
            cluster.task(id)["executor"].as_str().unwrap().to_owned()
        };
        ids.iter().map(over).collect()
    };
    assert_eq!(executors(&cluster), ["w2"; 6]);
    let listen = admin.trim_start_matches("http://").to_owned();
    let args =
        ["manager", "--state-folder", "m", "--listen", "127.0.0.1:0", "--admin-listen", &listen];
    signal(&cluster.manager.child, "-TERM");
    cluster.manager.child.wait().unwrap();
    cluster.manager = Process::start(&cluster.folder, &args);
    within("the workers are back", LIMIT, || {
        ["w1", "w2"].iter().all(|name| cluster.member(&cluster.manager, name)["slots"] == 1)
    });
    assert_eq!(cluster.member(&cluster.manager, "w1")["draining"], true);
    assert_eq!(executors(&cluster), ["w2"; 6]);
    succeeded(&cluster.folder, &["undrain", "w1", "--admin", &admin]);
    succeeded(&cluster.folder, &["drain", "w2", "--admin", &admin]);
    assert_eq!(executors(&cluster), ["w1"; 6]);
    let (is_ok, error) = run(&cluster.folder, &["drain", "m1", "--admin", &admin]);
    assert!(!is_ok && error.contains("workers alone are drained"), "{error}");
    let gate = cluster.gate.admin();
    let (is_ok, error) = run(&cluster.folder, &["drain", "w1", "--admin", &gate]);
    assert!(!is_ok && error.contains("no manager"), "{error}");
}

/// Else every member would show a drain that stops nothing.
#[test]
fn a_manager_refuses_to_drain_a_worker_that_dials_another() {
    let cluster = Cluster::start(&[]);
    let folder = &cluster.folder;
    let made = succeeded(folder, &["cluster", "token", "manager", "--state-folder", "m"]);
    let (join, udp) = (join_args(&made, "manager"), free_udp().to_string());
    let args = ["manager", "--state-folder", "m2", "--node", "m2", "--join", join, "--udp", &udp];
    let free = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
    let workers = ["--set", "workers.address=127.0.0.1:0"];
    let second = Process::start(folder, &[&args[..], &free, &workers].concat());
    within("it knows the worker", LIMIT, || cluster.member(&second, "w1")["state"] == "alive");
    let admin = second.admin();
    for what in ["drain", "undrain"] {
        let (is_ok, error) = run(folder, &[what, "w1", "--admin", &admin]);
        assert!(!is_ok && error.contains("drain it at the manager that it dials"), "{error}");
    }
    assert_eq!(cluster.member(&second, "w1")["draining"], false);
    succeeded(folder, &["drain", "w1", "--admin", &cluster.manager.admin()]);
    within("all know", LIMIT, || cluster.member(&second, "w1")["draining"] == true);
}

#[test]
fn a_killed_worker_is_known_by_all_within_five_seconds() {
    let mut cluster = Cluster::start(&[]);
    drop(cluster.w1.take());
    within("all know", Duration::from_secs(5), || {
        let known = |process| cluster.member(process, "w1")["state"] == "down";
        known(&cluster.manager) && known(&cluster.gate)
    });
}

#[test]
fn a_node_that_was_stopped_suspects_nobody_when_it_wakes() {
    let cluster = Cluster::start(&[]);
    signal(&cluster.gate.child, "-STOP");
    sleep(Duration::from_secs(3));
    signal(&cluster.gate.child, "-CONT");
    within("it is one of them again", Duration::from_secs(10), || {
        cluster.member(&cluster.manager, "g1")["state"] == "alive"
            && cluster.members(&cluster.gate)["members"]
                .as_array()
                .unwrap()
                .iter()
                .all(|member| member["state"] == "alive")
    });
    let packets = cluster.members(&cluster.gate)["packets"].clone();
    assert_eq!(packets["suspicions"], 0, "{packets}");
    assert!(packets["stalls"].as_u64().unwrap() >= 1, "it has noticed: {packets}");
}

#[test]
fn a_worker_that_membership_says_is_down_runs_its_task_once() {
    // The path of the packets to the worker, which is cut. Sessions have their own.
    let (outside, inside) = (UdpSocket::bind("127.0.0.1:0").unwrap(), free_udp());
    let advertised = outside.local_addr().unwrap().to_string();
    outside.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let (is_cut, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (cut, over) = (Arc::clone(&is_cut), Arc::clone(&is_over));
    let relay = std::thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while !over.load(Ordering::Relaxed) {
            if let Ok((bytes, _)) = outside.recv_from(&mut buffer)
                && !cut.load(Ordering::Relaxed)
            {
                let _ = outside.send_to(&buffer[..bytes], inside);
            }
        }
    });
    let listen = inside.to_string();
    let cluster = Cluster::start(&["--udp", &advertised, "--udp-listen", &listen]);
    let admin = cluster.manager.admin();
    succeeded(&cluster.folder, &["drain", "w2", "--admin", &admin]);
    let id = cluster.submit(&cluster.manager, "sleep 12s");
    within("it runs", LIMIT, || cluster.task(&id)["status"] == "running");
    is_cut.store(true, Ordering::Relaxed);
    within("it is thought to be down", Duration::from_secs(10), || {
        cluster.member(&cluster.manager, "w1")["state"] == "down"
    });
    // Another worker is free now, if membership decided.
    succeeded(&cluster.folder, &["undrain", "w2", "--admin", &admin]);
    within("it ends", LIMIT, || cluster.task(&id)["status"] == "succeeded");
    let task = cluster.task(&id);
    assert_eq!(
        (task["attempt"].as_u64(), task["executor"].as_str()),
        (Some(1), Some("w1")),
        "{task}"
    );
    assert_eq!(cluster.member(&cluster.manager, "w1")["state"], "down", "all the time");
    is_cut.store(false, Ordering::Relaxed);
    within("it is back", Duration::from_secs(10), || {
        cluster.member(&cluster.manager, "w1")["state"] == "alive"
    });
    is_over.store(true, Ordering::Relaxed);
    relay.join().unwrap();
}
