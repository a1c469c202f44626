//! `tidegate up` as a process: started, asked with curl, and ended by signals.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{banner, banner_url, commands_to_try, curl, shell, signal, succeeded};
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// A running `tidegate up` on free ports. Killed if its test fails.
struct Up {
    child: Child,
    out: BufReader<ChildStdout>,
    banner: String,
    data: String,
    admin: String,
}

impl Up {
    fn start(args: &[&str]) -> Self {
        Self::spawn(&mut command(
            &["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"],
            args,
        ))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let banner = banner(&mut out);
        let (data, admin) = (banner_url(&banner, "clients"), banner_url(&banner, "operators"));
        Self { child, out, banner, data, admin }
    }

    fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits for the end and answers the exit code.
    fn end(&mut self) -> Option<i32> {
        let mut rest = String::new();
        let _ = self.out.read_to_string(&mut rest);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Path that an [`Upstream`] holds until it is released; other paths are unknown.
const HELD: &str = "/held";

/// An upstream in a few lines.
struct Upstream {
    url: String,
    gone: Arc<(Mutex<bool>, Condvar)>,
}

impl Upstream {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let gone: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let held = Arc::clone(&gone);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let held = Arc::clone(&held);
                thread::spawn(move || answer(&stream, &held));
            }
        });
        Self { url, gone }
    }

    /// Answers what it holds, and what comes from now on.
    fn let_go(&self) {
        *self.gone.0.lock().unwrap() = true;
        self.gone.1.notify_all();
    }
}

/// `None` when whoever asks has left.
fn answer(stream: &TcpStream, gone: &(Mutex<bool>, Condvar)) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    loop {
        let first = lines.next()?;
        lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
        let status = match first.split(' ').nth(1)? {
            HELD => {
                drop(gone.1.wait_while(gone.0.lock().ok()?, |gone| !*gone).ok()?);
                "200 OK"
            }
            _ => "404 Not Found",
        };
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        (&*stream).write_all(answer.as_bytes()).ok()?;
    }
}

/// A folder that no other test uses.
fn new_folder() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("up-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn command(first: &[&str], then: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("up").args(first).args(then).env_clear().current_dir(env!("CARGO_TARGET_TMPDIR"));
    let (ingest, store) = (["--frames-listen", "--lines-listen"], new_folder());
    command.args(ingest.iter().flat_map(|flag| [flag, "127.0.0.1:0"]));
    command.arg("--store").arg(store).arg("--task-store").arg(new_folder());
    command
}

#[test]
fn with_no_upstream_one_command_shows_it_working_and_says_that_mocks_answer() {
    let mut up = Up::start(&[]);
    assert!(up.banner.contains("using 2 MOCK inference servers"), "{}", up.banner);
    let answer = curl(&["-i", &format!("{}/hello", up.data)]);
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("x-tidegate-mock: mock-"), "{answer}");
    assert!(curl(&[&format!("{}/health/ready", up.admin)]).contains("\"ready\""));
    assert!(curl(&["-N", &format!("{}/events", up.data)]).contains("data: event 10 of 10"));
    assert!(curl(&[&format!("{}/v1/stats", up.admin)]).contains("\"demo\":true"));
    assert!(curl(&["--http2-prior-knowledge", "-i", &up.data]).starts_with("HTTP/2 200"));
    up.signal("-TERM");
    assert_eq!(up.end(), Some(0));
}

#[test]
fn everything_that_the_banner_says_to_try_works() {
    // Runtimes are looked for in the path.
    let (listen, path) = (["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"], "PATH");
    let up = Up::spawn(command(&listen, &[]).env(path, std::env::var_os(path).unwrap()));
    let lines = commands_to_try(&up.banner);
    assert_eq!(lines.len(), 5, "{}", up.banner);
    assert!(lines[4].starts_with("tidegate submit --admin http://127.0.0.1:"), "{}", lines[4]);
    let mut said = String::new();
    for line in lines {
        let out = succeeded(&mut shell(&line, &std::env::temp_dir()));
        assert!(!out.is_empty(), "{line}");
        said += &out;
    }
    assert!(said.ends_with("hello\n"), "the output of the task: {said}");
    assert!(said.contains("chat.completion.chunk") && said.contains("data: [DONE]"), "{said}");
}

/// Starts a gateway to an upstream, in a folder of its own, with no other flags about ingestion and tasks.
fn start_gateway(args: &[&str]) -> (Up, PathBuf) {
    let folder = new_folder();
    std::fs::create_dir_all(&folder).unwrap();
    let upstream = Upstream::start();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["up", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    command.args(["--upstream", &upstream.url]).args(args).env_clear().env("HOME", &folder);
    (Up::spawn(command.current_dir(&folder)), folder)
}

#[test]
fn a_gateway_to_upstreams_runs_no_tasks_and_takes_in_no_records() {
    let (up, folder) = start_gateway(&[]);
    for line in ["  ingest     off", "(--ingest to", "  tasks      off", "(--tasks to"] {
        assert!(up.banner.contains(line), "{line:?} is not in: {}", up.banner);
    }
    assert!(!up.banner.contains("/v1/tasks") && !up.banner.contains("sandbox"), "{}", up.banner);
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
    assert!(left.is_empty(), "nothing is stored: {left:?}");
    for port in [&up.data, &up.admin] {
        let task = [r#"{"runtime": "sh", "code": "echo hello"}"#, "content-type: application/json"];
        let submit = curl(&["-i", &format!("{port}/v1/tasks"), "-d", task[0], "-H", task[1]]);
        assert!(submit.starts_with("HTTP/1.1 404"), "{submit}");
        assert!(submit.contains("tasks_off") && submit.contains("--tasks"), "{submit}");
        let usage = curl(&["-i", &format!("{port}/v1/usage")]);
        assert!(usage.starts_with("HTTP/1.1 404"), "{usage}");
        assert!(usage.contains("ingest_off") && usage.contains("--ingest"), "{usage}");
    }
    assert!(curl(&[&format!("{}/v1/executors", up.admin)]).contains("tasks_off"));
}

#[test]
fn a_gateway_to_upstreams_runs_tasks_when_asked() {
    let (up, _folder) = start_gateway(&["--tasks", "--set", "tasks.executor=mock"]);
    assert!(up.banner.contains("  tasks      stored in"), "{}", up.banner);
    assert!(up.banner.contains("  ingest     off"), "{}", up.banner);
    assert!(curl(&[&format!("{}/v1/tasks", up.admin)]).contains("\"tasks\":["));
}

#[test]
fn a_terminated_gateway_finishes_what_is_under_way() {
    let upstream = Upstream::start();
    let mut up = Up::start(&["--upstream", &upstream.url]);
    let url = format!("{}{HELD}", up.data);
    let slow = thread::spawn(move || curl(&["-w", "%{http_code}", "-o", "/dev/null", &url]));
    wait_until_under_way(&up);
    up.signal("-INT");
    wait_until_draining(&up);
    upstream.let_go();
    assert_eq!(slow.join().unwrap(), "200");
    assert_eq!(up.end(), Some(0));
}

#[test]
fn a_second_signal_stops_at_once() {
    let mut up = Up::start(&[]);
    let url = format!("{}/slow?ms=60000", up.data);
    let slow = thread::spawn(move || curl(&["-w", "%{http_code}", "-o", "/dev/null", &url]));
    wait_until_under_way(&up);
    up.signal("-TERM");
    wait_until_draining(&up);
    // Two within half a second are taken for one.
    thread::sleep(Duration::from_millis(600));
    up.signal("-TERM");
    assert_eq!(up.end(), Some(1));
    assert_eq!(slow.join().unwrap(), "000", "what was under way is cut");
}

fn wait_until_draining(up: &Up) {
    let start = Instant::now();
    while !curl(&[&format!("{}/health/ready", up.admin)]).contains("draining") {
        assert!(start.elapsed() < Duration::from_secs(30), "never began to drain");
    }
}

fn wait_until_under_way(up: &Up) {
    let start = Instant::now();
    loop {
        let stats = curl(&[&format!("{}/v1/stats", up.admin)]);
        if stats.contains("\"normal_in_flight\":1") {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "never under way: {stats}");
    }
}

#[test]
fn a_port_that_is_taken_is_said_plainly() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap();
    let output = command(&["--listen", &taken.to_string()], &[]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains(&format!("can't listen on {taken}")) && error.contains("--listen"),
        "{error}"
    );
}

#[test]
fn overload_by_curl_is_refused_by_priority() {
    let limits =
        ["--global-limit", "10", "--high-limit", "5", "--normal-limit", "3", "--low-limit", "2"];
    let upstream = Upstream::start();
    let up = Up::start(&[&limits[..], &["--upstream", &upstream.url]].concat());
    let (tell, told) = mpsc::channel();
    for _ in 0..6 {
        let (tell, url) = (tell.clone(), format!("{}{HELD}", up.data));
        thread::spawn(move || {
            let low = ["-H", "tidegate-priority: low", "-w", "%{http_code}", "-o", "/dev/null"];
            let _ = tell.send(curl(&[&low[..], &[&url]].concat()));
        });
    }
    // The others are answered when these have been.
    let first: Vec<String> = told.iter().take(4).collect();
    assert_eq!(first, ["503"; 4]);
    upstream.let_go();
    let last: Vec<String> = told.iter().take(2).collect();
    assert_eq!(last, ["200"; 2]);
}

/// `tidegate threshold …` at this gateway: exit code, standard output and error.
fn threshold(up: &Up, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("threshold")
        .args(args)
        .args(["--admin", &up.admin])
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn thresholds_are_read_set_and_cleared_from_a_shell() {
    let up = Up::start(&["--busy-preset", "latency"]);
    assert!(up.banner.contains("more than 0.7 of its KV blocks"), "{}", up.banner);
    // The model is known once the mocks were asked for theirs.
    let start = Instant::now();
    while !threshold(&up, &["get", "tidegate-mock"]).1.contains("5000") {
        assert!(start.elapsed() < Duration::from_secs(30), "the mocks' model never became known");
        thread::sleep(Duration::from_millis(20));
    }
    let set = ["set", "tidegate-mock", "--active-decode-blocks-threshold", "0.85"];
    let (code, out, _) = threshold(&up, &set);
    assert_eq!(code, Some(0));
    assert!(out.contains("tidegate-mock  0.85       5000            off"), "{out}");
    let (code, out, _) = threshold(&up, &["clear", "tidegate-mock", "active-prefill-tokens"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("tidegate-mock  0.85       off             off"), "{out}");
    let (code, out, _) = threshold(&up, &["get", "--json"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("\"active_decode_blocks_threshold\": 0.85"), "{out}");
    let (code, _, error) =
        threshold(&up, &["set", "tidegate-mock", "--active-decode-blocks-threshold", "1.5"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("1.5 is out of range"), "{error}");
    let (code, _, error) = threshold(&up, &["clear", "nope"]);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("there is no model \"nope\""), "{error}");
}

#[test]
fn without_a_gateway_a_threshold_command_says_what_to_do() {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["threshold", "get", "--admin", "127.0.0.1:1"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("no node responds at 127.0.0.1:1"), "{error}");
}
