//! `tidegate ingest` as a process: killed in the middle of a stream, with a disk that takes no more, and ended by
//! a signal under load. Nothing that was acknowledged is missing, and nothing counts twice.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use super::support::{commands_to_try, shell, succeeded};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tidegate::client::{ClientConfig, ClientStats, IngestClient};
use tidegate::retry::Decorrelated;
use tidegate::usage::UsageRecord;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Only ends a test that has failed; none is judged by it.
const LONGEST: Duration = Duration::from_secs(60);

/// A running `tidegate ingest` whose frames arrive at an address that stays the same. Killed if its test fails.
struct Ingest {
    child: Child,
    out: BufReader<ChildStdout>,
    admin: String,
    banner: String,
}

/// Where one runs, again and again.
struct Place {
    folder: PathBuf,
    frames: String,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("ingest-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // Free now, and ours from the first start on.
        let frames = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        Self { folder, frames }
    }

    fn start(&self) -> Ingest {
        self.start_with(&[])
    }

    fn start_with(&self, args: &[&str]) -> Ingest {
        let since = Instant::now();
        loop {
            if let Some(ingest) = self.try_start(args) {
                return ingest;
            }
            assert!(since.elapsed() < LONGEST, "it does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// None when it ends at once, such as when its port is not free yet.
    fn try_start(&self, args: &[&str]) -> Option<Ingest> {
        // A write beyond the limit on files is an error only for those who don't listen to the signal.
        let mut child = Command::new("sh")
            .args(["-c", "trap '' XFSZ; exec \"$@\"", "runner", env!("CARGO_BIN_EXE_tidegate")])
            .args(["ingest", "--admin-listen", "127.0.0.1:0"])
            .args(["--set", &format!("ingest.frames_address={}", self.frames)])
            .args(["--set", "ingest.lines_address=127.0.0.1:0"])
            .args(["--set", &format!("ingest.store={}", self.folder.join("store").display())])
            .args(args)
            .current_dir(&self.folder)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(self.folder.join("log")).unwrap())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        while !banner.contains("Ctrl-C") {
            if out.read_line(&mut banner).unwrap() == 0 {
                child.wait().unwrap();
                return None;
            }
        }
        let line = banner.lines().find(|line| line.trim_start().starts_with("operators")).unwrap();
        let admin = line.split_whitespace().nth(1).unwrap().to_owned();
        Some(Ingest { child, out, admin, banner })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Ingest {
    fn get(&self, path: &str) -> Value {
        let output = Command::new("curl")
            .args(["--silent", "--max-time", "30", &format!("{}{path}", self.admin)])
            .output()
            .expect("curl is needed for this test: install it, or run `make setup`");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Count and sum of the stored records.
    fn stored(&self) -> (u64, String) {
        let usage = self.get("/v1/usage?by=both&from_ns=0&until_ns=9000000000000000000");
        match usage["rows"].as_array().unwrap().as_slice() {
            [] => (0, "0".to_owned()),
            [row] => {
                (row["records"].as_u64().unwrap(), row["quantity"].as_str().unwrap().to_owned())
            }
            rows => panic!("{rows:?}"),
        }
    }

    /// Records acknowledged as durable since the start.
    fn durable(&self) -> u64 {
        self.get("/v1/stats")["ingest"]["records_stored"].as_u64().unwrap()
    }

    fn tell(&self, program: &str, args: &[&str]) {
        let id = self.child.id().to_string();
        let args: Vec<_> = args.iter().map(|arg| if *arg == "PID" { &id } else { *arg }).collect();
        assert!(Command::new(program).args(args).status().unwrap().success(), "{program}");
    }

    /// Sets the limit of file sizes.
    fn limit_files(&self, bytes: &str) {
        self.tell("prlimit", &["--pid", "PID", &format!("--fsize={bytes}:unlimited")]);
    }

    fn eventually(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        let since = Instant::now();
        while !holds(&self.get("/v1/stats")["ingest"]) {
            assert!(since.elapsed() < LONGEST, "never came true: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end and answers the exit code.
    fn end(mut self) -> Option<i32> {
        let mut rest = String::new();
        let _ = self.out.read_to_string(&mut rest);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Ingest {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The library's client, sending records of 1, 2, 3 and so on as fast as it is let.
struct Stream {
    client: Arc<IngestClient>,
    stop: Arc<AtomicBool>,
    sending: JoinHandle<u64>,
}

impl Stream {
    fn start(frames: &str) -> Self {
        let mut config = ClientConfig::new("stream".parse().unwrap());
        config.backoff =
            Decorrelated { base: Duration::from_millis(20), cap: Duration::from_millis(200) };
        let client = Arc::new(IngestClient::connect(frames, config).unwrap().0);
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, stopped) = (Arc::clone(&client), Arc::clone(&stop));
        let sending = tokio::spawn(async move {
            let mut last = 0;
            while !stopped.load(Ordering::Relaxed) {
                let records: Vec<_> = (last + 1..=last + 50).map(record).collect();
                sender.send_batch(&records).await.unwrap();
                last += 50;
                tokio::task::yield_now().await;
            }
            last
        });
        Self { client, stop, sending }
    }

    fn stats(&self) -> ClientStats {
        self.client.stats()
    }

    async fn acked_more_than(&self, records: u64) {
        let since = Instant::now();
        while self.stats().records_acked <= records {
            assert!(since.elapsed() < LONGEST, "never more than {records}: {:?}", self.stats());
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Ends it; the last number, once all up to it are acknowledged.
    async fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let last = self.sending.await.unwrap();
        self.client.flush().await.unwrap();
        last
    }
}

fn record(number: u64) -> UsageRecord {
    UsageRecord {
        tenant: "acme".into(),
        meter: "tokens".into(),
        quantity: number.into(),
        time_ns: 1_700_000_000_000_000_000,
        labels: "".into(),
    }
}

/// All of 1 … `last`, each once.
fn all_up_to(last: u64) -> (u64, String) {
    (last, (last * (last + 1) / 2).to_string())
}

#[test]
fn what_is_refused_is_logged_with_the_reason_and_the_address_and_not_once_for_each() {
    let place = Place::new("refused");
    let _ingest = place.start();
    let mut peer = TcpStream::connect(&place.frames).unwrap();
    let address = peer.local_addr().unwrap();
    let since = Instant::now();
    // A hundred frames of a kind that there is not.
    for _ in 0..100 {
        peer.write_all(b"\x00\x00\x00\x04\x01\x63\x02\x00").unwrap();
    }
    loop {
        let log = std::fs::read_to_string(place.folder.join("log")).unwrap();
        let refusals: Vec<_> = log.lines().filter(|line| line.contains("refused what")).collect();
        if let Some(first) = refusals.first() {
            assert!(first.contains(&address.to_string()), "{first}");
            assert!(first.contains("unknown_kind"), "{first}");
            // One a second.
            assert!(refusals.len() as u64 <= since.elapsed().as_secs() + 1, "{log}");
            return;
        }
        assert!(since.elapsed() < LONGEST, "nothing is logged: {log}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_in_the_middle_of_a_stream_nothing_acked_is_missing_and_nothing_counts_twice() {
    let place = Place::new("killed");
    let mut ingest = place.start();
    let stream = Stream::start(&place.frames);
    for round in 0..5_u64 {
        // At another moment each time: early in a commit, late, after tables were written.
        stream.acked_more_than(stream.stats().records_acked + 500 + 3_000 * round).await;
        sleep(Duration::from_micros(700 * round)).await;
        let acked = stream.stats().records_acked;
        ingest.kill();
        ingest = place.start();
        let (stored, _) = ingest.stored();
        assert!(stored >= acked, "round {round}: {stored} of {acked} that were acked");
    }
    let resent = stream.stats().records_resent;
    let last = stream.finish().await;
    assert_eq!(ingest.stored(), all_up_to(last));
    assert!(resent > 0, "no kill hit anything");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_takes_no_more_holds_senders_up_until_it_does() {
    let place = Place::new("full");
    let ingest = place.start();
    let stream = Stream::start(&place.frames);
    for round in 0..2 {
        stream.acked_more_than(stream.stats().records_acked + 2_000).await;
        ingest.limit_files("0");
        ingest.eventually("it notices", |stats| stats["store_ok"] == false);
        assert_eq!(ingest.get("/health/ready")["status"], "store_unavailable", "round {round}");
        // An acknowledgement from before may come late, and what is stored can't be asked for now.
        let stored = ingest.durable();
        sleep(Duration::from_millis(500)).await;
        let stats = stream.stats();
        assert_eq!(ingest.durable(), stored, "stored where nothing can be");
        assert!(stats.records_acked <= stored, "acknowledged and not stored: {stats:?}");
        assert!(stats.connected && stats.records_rejected == 0, "{stats:?}");
        ingest.limit_files("unlimited");
        ingest.eventually("it works again", |stats| stats["store_ok"] == true);
        assert_eq!(ingest.get("/health/ready")["status"], "ready");
    }
    let last = stream.finish().await;
    assert_eq!(ingest.stored(), all_up_to(last));
    // And what it has is whole.
    ingest.kill();
    assert_eq!(place.start().stored(), all_up_to(last));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminated_under_load_it_stores_what_it_took_and_the_next_one_goes_on() {
    let place = Place::new("terminated");
    let mut ingest = place.start();
    let stream = Stream::start(&place.frames);
    for _ in 0..2 {
        stream.acked_more_than(stream.stats().records_acked + 5_000).await;
        let since = Instant::now();
        ingest.tell("kill", &["-TERM", "PID"]);
        assert_eq!(ingest.end(), Some(0));
        assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
        let acked = stream.stats().records_acked;
        ingest = place.start();
        assert!(ingest.stored().0 >= acked);
    }
    let last = stream.finish().await;
    assert_eq!(ingest.stored(), all_up_to(last));
}

#[test]
fn a_token_sends_for_its_own_tenants_and_is_in_no_log() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new("tokens");
    let (token, wrong) = ("tg_correct-horse-battery", "tg_nobody-has-this-one");
    let config = place.folder.join("tidegate.toml");
    let text = format!("[[client]]\nname = \"acme\"\ntoken = \"{token}\"\n");
    std::fs::write(&config, text).unwrap();
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut ingest = place.start_with(&[
        "--config",
        config.to_str().unwrap(),
        "--set",
        "ingest.tokens_required=true",
        "--set",
        "log.level=trace",
    ]);
    let file = place.folder.join("usage.lp");
    std::fs::write(&file, "tokens,tenant=acme value=5 1\n").unwrap();
    let mut told = String::new();
    let mut send = |file: &Path, token: Option<&str>, variable: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["send", "--to", &place.frames, "--timeout", "30"]).arg(file).env_clear();
        command.args(token.iter().flat_map(|token| ["--token", token]));
        command.envs(variable.map(|token| ("TIDEGATE_TOKEN", token)));
        let output = command.output().unwrap();
        told += &String::from_utf8_lossy(&[output.stdout, output.stderr].concat());
        output.status.code()
    };
    assert_eq!(send(&file, None, None), Some(1));
    assert_eq!(send(&file, Some(wrong), None), Some(1));
    assert_eq!(send(&file, Some("tg_abc"), None), Some(2));
    assert_eq!(send(&file, Some(token), None), Some(0));
    std::fs::write(&file, "tokens,tenant=acme value=6 1\n").unwrap();
    assert_eq!(send(&file, None, Some(token)), Some(0));
    std::fs::write(&file, "tokens,tenant=other value=7 1\n").unwrap();
    assert_eq!(send(&file, Some(token), None), Some(1));
    assert_eq!(ingest.stored(), (2, "11".to_owned()));
    let stats = ingest.get("/v1/stats").to_string();
    for (filter, shown) in [("acme", "acme 2 2 0.0000 USD"), ("", "no usage")] {
        let admin = ingest.admin.trim_start_matches("http://");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["usage", "--admin", admin, "--since", "1969-12-31", "--by", "client"]);
        let output = command.args(["--client", filter]).env_clear().output().unwrap();
        let table = String::from_utf8(output.stdout).unwrap();
        let last = table.lines().last().unwrap_or_default();
        assert_eq!(last.split_whitespace().collect::<Vec<_>>().join(" "), shown, "{table}");
    }
    ingest.child.kill().unwrap();
    let mut banner = String::new();
    ingest.out.read_to_string(&mut banner).unwrap();
    let log = std::fs::read_to_string(place.folder.join("log")).unwrap();
    assert!(log.contains("unauthorized"), "{log}");
    assert!(stats.contains("tenant_refused"), "{stats}");
    assert!(told.contains("tenant_refused"), "{told}");
    for text in [&told, &stats, &banner, &log] {
        for secret in [token, wrong, "tg_abc"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[test]
fn usage_of_more_tenants_than_a_page_has_is_shown_whole() {
    use std::fmt::Write as _;
    const TENANTS: usize = 6_000;
    let place = Place::new("pages");
    let mut ingest = place.start();
    let file = place.folder.join("usage.lp");
    let text = (0..TENANTS).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "tokens,tenant=t{number:05} value=1 1700000000000000000");
        text
    });
    std::fs::write(&file, text).unwrap();
    let command = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        let output = command.args(args).env_clear().output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    command(&["send", file.to_str().unwrap(), "--to", &place.frames]);
    let admin = ingest.admin.trim_start_matches("http://");
    let since = ["usage", "--admin", admin, "--since", "2023-01-01"];
    let json: Value = serde_json::from_str(&command(&[&since[..], &["--json"]].concat())).unwrap();
    assert_eq!((json["rows"].as_array().unwrap().len(), &json["next"]), (TENANTS, &Value::Null));
    let table = command(&since);
    assert_eq!(table.lines().filter(|line| line.starts_with('t')).count(), TENANTS);
    assert!(table.contains("t05999"));
    ingest.child.kill().unwrap();
    let stopped = ["usage", "--store", "store", "--since", "2023-01-01", "--json"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    ingest.child.wait().unwrap();
    let output = command.args(stopped).current_dir(&place.folder).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), TENANTS);
}

#[test]
fn what_it_says_to_try_works() {
    let place = Place::new("tries");
    let ingest = place.start();
    let lines = commands_to_try(&ingest.banner);
    assert_eq!(lines.len(), 2, "{}", ingest.banner);
    succeeded(&mut shell(&lines[0], &place.folder));
    let usage = succeeded(&mut shell(&lines[1], &place.folder));
    let acme = usage.lines().find(|line| line.starts_with("acme")).unwrap();
    assert_eq!(acme.split_whitespace().nth(1), Some("1"), "one record: {usage}");
    ingest.tell("kill", &["-TERM", "PID"]);
    assert_eq!(ingest.end(), Some(0));
}
