//! A gateway over real sockets is recorded while it is under load, and what was recorded is replayed.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tidegate_server::config::{Config, LoadSource};
use tidegate_server::gateway::Gateway;

/// Duration of a request at the upstream.
const WORK: Duration = Duration::from_millis(15);

fn file(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("{name}-{}-{number}.ndjson", std::process::id());
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn tidegate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate")).args(args).env_clear().output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads one head, and says how long the body after it is. `None` at the end of the connection.
fn head(reader: &mut impl BufRead) -> Option<(String, usize)> {
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            return Some((first, length));
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
}

/// An upstream that takes its time for each request.
fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().expect("a socket has two ends"));
                while head(&mut reader).is_some() {
                    thread::sleep(WORK);
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    if (&stream).write_all(answer).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

fn gateway(toml: &str) -> Gateway {
    let text = format!("{toml}\n[[upstream]]\nurl = \"http://{}\"\n", upstream());
    let mut config = Config::from_toml(&text).unwrap_or_else(|errors| panic!("{errors}"));
    config.listen.address = "127.0.0.1:0".parse().unwrap();
    config.listen.admin_address = "127.0.0.1:0".parse().unwrap();
    config.routing.load_source = LoadSource::Headers;
    Gateway::start(config).unwrap()
}

/// Asks until the time is over, and counts answers by whether they were refused.
fn ask(address: SocketAddr, priority: &str, until: Instant) -> [u64; 2] {
    let stream = TcpStream::connect(address).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut counts = [0; 2];
    while Instant::now() < until {
        let request = format!("GET / HTTP/1.1\r\nhost: x\r\ntidegate-priority: {priority}\r\n\r\n");
        (&stream).write_all(request.as_bytes()).unwrap();
        let (status, length) = head(&mut reader).expect("a gateway answers");
        reader.read_exact(&mut vec![0; length]).unwrap();
        let is_refused = status.contains(" 503 ");
        assert!(is_refused || status.contains(" 200 "), "{status}");
        counts[usize::from(is_refused)] += 1;
        if is_refused {
            thread::sleep(Duration::from_millis(4));
        }
    }
    counts
}

/// A recorder that has begun.
fn recorder(gateway: &Gateway, path: &str, lasts: &str) -> Child {
    let admin = format!("http://{}", gateway.admin_address());
    let child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["drill", "--record", path, "--target", &admin, "--for", lasts])
        .env_clear()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !gateway.control().decision_log().is_on() {
        assert!(start.elapsed() < Duration::from_secs(30), "it never began to record");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

fn replay(path: &str, more: &[&str]) -> Value {
    let output = tidegate(&[&["sim", "--replay", path, "--json"], more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_a_gateway_decided_is_replayed_as_it_was_and_with_other_limits() {
    let gateway =
        gateway("[admission]\nglobal_limit = 8\nhigh_limit = 0\nnormal_limit = 5\nlow_limit = 3\n");
    let path = file("load");
    let path = path.to_str().unwrap();
    let recorder = recorder(&gateway, path, "8s");
    let until = Instant::now() + Duration::from_secs(3);
    let address = gateway.address();
    let askers: Vec<_> = (0..20)
        .map(|number| {
            let priority = if number % 2 == 0 { "normal" } else { "low" };
            thread::spawn(move || ask(address, priority, until))
        })
        .collect();
    let [answered, refused] = askers.into_iter().fold([0, 0], |sum, asker| {
        let [answered, refused] = asker.join().unwrap();
        [sum[0] + answered, sum[1] + refused]
    });
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("decisions in"), "{}", text(&output.stdout));
    assert!(answered > 100 && refused > 100, "{answered} answered, {refused} refused");

    // The command that it says to compare with.
    let said = text(&output.stdout);
    let line = said.lines().map(str::trim).find(|line| line.starts_with("tidegate sim ")).unwrap();
    let compared = tidegate(&line.split(' ').skip(1).collect::<Vec<_>>());
    assert!(compared.status.success(), "{line}: {}", text(&compared.stderr));

    let same = replay(path, &[]);
    assert_eq!((&same["lost"], &same["end"]), (&0.into(), &"time".into()));
    let was = &same["as_recorded"]["all"];
    assert_eq!(was["admitted"], answered, "every answer was written down: {was}");
    let limited = was["global_limit"].as_u64().unwrap() + was["priority_limit"].as_u64().unwrap();
    assert_eq!(limited, refused, "and every refusal: {was}");
    assert!(was["in_flight_max"].as_u64().unwrap() <= 8);

    // Who of two wins the last place is decided within microseconds, and each that is decided otherwise has
    // drawn times from then on: decisions may differ one by one. How many are let in must not.
    let difference = same["same"]["let_in_difference"].as_f64().unwrap();
    let agree = same["same"]["same_decision"].as_f64().unwrap();
    eprintln!(
        "agrees in {agree:.3}, lets in {difference:+.4}; {answered} answered, {refused} refused"
    );
    assert!(difference.abs() <= 0.05, "{difference}");
    let share = answered as f64 / (answered + refused) as f64;
    let by_chance = share * share + (1.0 - share) * (1.0 - share);
    assert!(agree > by_chance + (1.0 - by_chance) / 2.0, "{agree} where chance gives {by_chance}");

    let lower = replay(path, &["--set", "limits.low=1"]);
    let low = |outcome: &Value| outcome["by_priority"]["low"]["admitted"].as_u64().unwrap();
    assert!(low(&lower["changed"]) < low(&lower["same"]) * 2 / 3, "{lower}");
    assert_eq!(lower["changed"]["by_priority"]["low"]["in_flight_max"], 1);
    let higher = replay(path, &["--set", "limits.global=100", "--set", "limits.normal=50"]);
    assert!(higher["changed"]["all"]["admitted"].as_u64() > was["admitted"].as_u64());
    let shown = tidegate(&["sim", "--replay", path, "--set", "limits.low=1"]);
    let shown = text(&shown.stdout);
    assert!(shown.contains("refused: priority_limit") && shown.contains("% of cases"), "{shown}");
    let _ = gateway.shutdown();
}

#[test]
fn what_was_recorded_until_ctrl_c_is_a_recording() {
    let gateway = gateway("");
    let path = file("interrupted");
    let path = path.to_str().unwrap();
    let recorder = recorder(&gateway, path, "60s");
    // Until some of it is in the file: what is there then was recorded before the end.
    let (start, mut answered, mut kept) = (Instant::now(), 0, 0);
    while kept == 0 {
        assert!(start.elapsed() < Duration::from_secs(50), "nothing is written");
        answered += ask(gateway.address(), "high", Instant::now() + WORK)[0];
        let file = fs::read_to_string(path).unwrap_or_default();
        kept = file.matches("{\"at_us\":").count() as u64;
    }
    let id = recorder.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = recorder.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let last = fs::read_to_string(path).unwrap();
    assert!(last.lines().last().unwrap().contains("\"end\":\"interrupted\""), "{last}");
    let replayed = replay(path, &[]);
    let admitted = replayed["as_recorded"]["all"]["admitted"].as_u64().unwrap();
    assert!((kept..=answered).contains(&admitted), "{admitted} of {answered}, {kept} were kept");
    let shown = tidegate(&["sim", "--replay", path]);
    assert!(text(&shown.stdout).contains("ended early: interrupted"), "{}", text(&shown.stdout));
    let _ = gateway.shutdown();
}

#[test]
fn a_file_that_is_there_is_kept_unless_force_is_used() {
    let gateway = gateway("");
    let path = file("kept");
    fs::write(&path, "mine").unwrap();
    let admin = format!("http://{}", gateway.admin_address());
    let name = path.to_str().unwrap();
    let args = ["drill", "--record", name, "--target", &admin, "--for", "200ms"];
    let kept = tidegate(&args);
    assert_eq!(kept.status.code(), Some(2));
    assert!(text(&kept.stderr).contains("--force"), "{}", text(&kept.stderr));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let forced = tidegate(&[&args[..], &["--force"]].concat());
    assert!(forced.status.success(), "{}", text(&forced.stderr));
    assert!(fs::read_to_string(&path).unwrap().starts_with("{\"format\":\"tidegate-decisions\""));
    let _ = gateway.shutdown();
}

#[test]
fn what_is_no_admin_port_is_said_to_be_none() {
    let gateway = gateway("");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // The data port passes the path on, and the upstream answers it.
    for (address, says) in [(gateway.address(), "--admin-listen"), (nobody, "no node responds")] {
        let path = file("none");
        let target = format!("http://{address}");
        let output = tidegate(&["drill", "--record", path.to_str().unwrap(), "--target", &target]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
        assert!(!path.exists(), "nothing is left of it");
    }
    let _ = gateway.shutdown();
}

#[test]
fn what_is_no_recording_is_refused_with_the_line() {
    let head = r#"{"format":"tidegate-decisions","version":1,"limits":{"global":9,"high":4,"normal":3,"low":2,"critical_reserve":1},"sharing":"strict"}"#;
    let long = format!("{head}\n{}\n", "x".repeat(100_000));
    let cases = [
        (String::new(), "line 1: it is empty"),
        ("\u{0}\u{1}\n".to_owned(), "line 1: not a recording"),
        (format!("{head}\n\n{{\"at_us\":1}}\n"), "line 3: missing field"),
        (format!("{head}\n{{\"at_us\":}}\n{head}\n"), "line 2: "),
        (long, "line 2: it is longer than 4096 bytes"),
    ];
    for (text_of, says) in cases {
        let path = file("garbage");
        fs::write(&path, &text_of).unwrap();
        let output = tidegate(&["sim", "--replay", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2), "{says}");
        assert!(text(&output.stderr).contains(says), "{} for {says}", text(&output.stderr));
    }
    let twice = ["sim", "--replay", "x", "--set", "limits.low=1", "--set", "limits.low=2"];
    assert!(text(&tidegate(&twice).stderr).contains("set twice"));
    let unknown = tidegate(&["sim", "--replay", "x", "--set", "limit.low=1"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("limits.low"), "{}", text(&unknown.stderr));
}
