//! Drills of foreign servers.

use super::program::{DISOWNED, alone, drill, figure, file, notes};
use super::upstreams::TINY;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A server in a few lines. It takes a while for what is asked of it, and remembers what that was and how long
/// it took.
pub struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    took: Arc<Mutex<Vec<Duration>>>,
}

impl Server {
    /// Every `refuses`-th request is refused.
    pub fn start(refuses: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { address, asked: Arc::default(), took: Arc::default() };
        let (all, times) = (Arc::clone(&server.asked), Arc::clone(&server.took));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (asked, took) = (Arc::clone(&all), Arc::clone(&times));
                thread::spawn(move || serve(&stream, &asked, &took, refuses));
            }
        });
        server
    }

    /// The time that this share of all it was asked for did not exceed, in milliseconds.
    fn took_ms(&self, quantile: f64) -> f64 {
        let mut took = self.took.lock().unwrap().clone();
        took.sort();
        let rank = (took.len() as f64 * quantile).ceil() as usize;
        took[rank - 1].as_secs_f64() * 1e3
    }

    /// Number of requests.
    pub fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// Duration of a request: as the query says, or a default.
fn asked_for(line: &str) -> Duration {
    let ms = line.split_once("?ms=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    Duration::from_secs_f64(ms.unwrap_or(10.0) / 1e3)
}

/// Until the client goes.
fn serve(
    stream: &TcpStream,
    asked: &Mutex<Vec<String>>,
    took: &Mutex<Vec<Duration>>,
    refuses: usize,
) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    loop {
        let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let line = head.first()?.clone();
        let (began, lasts) = (Instant::now(), asked_for(&line));
        let count = {
            let mut asked = asked.lock().ok()?;
            asked.push(line);
            asked.len()
        };
        thread::sleep(lasts);
        let answer = match count.is_multiple_of(refuses) {
            true => "HTTP/1.1 429 Later\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n",
            false => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        };
        took.lock().ok()?.push(began.elapsed());
        (&*stream).write_all(answer.as_bytes()).ok()?;
    }
}

#[test]
fn any_server_can_be_drilled_by_a_path_of_its_own() {
    let _alone = alone();
    let server = Server::start(10);
    let (tiny, url) = (file("foreign", TINY), format!("http://{}/api?a=b", server.address));
    let args = ["--target", &url, "--json", "--duration", "1s", "--critical-path", "/alive"];
    let said = drill(&[&[tiny.to_str().unwrap()], &args[..]].concat());
    // Some are refused, which the scenario does not allow.
    assert_eq!(said.code, Some(1), "{}\n{}", said.error, said.out);
    let report = said.report();
    assert_eq!(report["target"], url);
    let refused = figure(&report, "refused_share", "people", None);
    assert!((0.05..0.15).contains(&refused), "{refused}");
    let good = figure(&report, "goodput_of_offered", "people", None);
    assert!((0.85..0.95).contains(&good), "{good}");
    assert!(said.out.contains("status_429"), "{}", said.out);
    let asked = server.asked.lock().unwrap();
    let count =
        |what: &str| asked.iter().filter(|line| **line == format!("GET {what} HTTP/1.1")).count();
    assert!(count("/api?a=b") > 150 && count("/alive") > 5, "{asked:?}");
    assert_eq!(count("/api?a=b") + count("/alive"), asked.len(), "{asked:?}");
    assert!(notes(&report).contains("the capacity of the target may differ"));
}

#[test]
fn without_a_path_work_is_asked_for() {
    let _alone = alone();
    let server = Server::start(usize::MAX);
    let (tiny, url) = (file("work", TINY), format!("http://{}", server.address));
    let said = drill(&[tiny.to_str().unwrap(), "--target", &url, "--json", "--duration", "1s"]);
    assert_eq!(said.code, Some(0), "{}\n{}", said.error, said.out);
    let asked = server.asked.lock().unwrap();
    assert!(asked.contains(&"GET /work?ms=20.000 HTTP/1.1".to_owned()), "{asked:?}");
    assert!(asked.contains(&"GET /health/ready HTTP/1.1".to_owned()), "{asked:?}");
}

#[test]
fn who_takes_connections_and_says_nothing_is_said_to() {
    let _alone = alone();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    // Cuts everything as soon as it is there.
    thread::spawn(move || silent.incoming().for_each(drop));
    let (tiny, url) = (file("silent", TINY), format!("http://{address}"));
    let said = drill(&[tiny.to_str().unwrap(), "--target", &url, "--duration", "500ms"]);
    said.failed_with(1, &["no response from"]);
}

/// A server that answers once on each connection, and is gone after so many of them.
fn gone_after(connections: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok).take(connections) {
            thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone()?).lines().map_while(Result::ok);
                if lines.by_ref().take_while(|line| !line.is_empty()).count() > 0 {
                    let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                    stream.write_all(head)?;
                }
                Ok::<_, std::io::Error>(())
            });
        }
    });
    address
}

#[test]
fn a_target_that_takes_no_connections_fails_and_the_generator_does_not() {
    let _alone = alone();
    let (tiny, url) = (file("gone", TINY), format!("http://{}", gone_after(50)));
    let said = drill(&[tiny.to_str().unwrap(), "--target", &url, "--json", "--duration", "1s"]);
    assert_eq!(said.code, Some(1), "{}\n{}", said.error, said.out);
    let report = said.report();
    let schedule = &report["schedule"];
    assert!(schedule["not_connected"].as_u64().unwrap() > 50, "{schedule}");
    assert_eq!((&schedule["unsent"], &schedule["out_of_sockets"]), (&0.into(), &0.into()));
    assert!(!said.error.contains("never sent"), "{}", said.error);
    assert!(figure(&report, "failed_share", "people", None) > 0.3, "{schedule}");
}

/// Sixty a second that take half a second, and one in five a second and a half.
const KNOWN: &str = r#"
about = "Work whose times the server knows"
duration_s = 4
upstreams = { count = 2, slots = 100, queue = 100 }

[[class]]
name = "people"
per_s = 60
service = { kind = "bimodal", ms = 500, slow_ms = 1500, slow_share = 0.2 }

[[expect]]
what = "failed_share"
max = 0
"#;

#[test]
fn what_is_reported_is_within_a_twentieth_of_what_the_server_knows() {
    let _alone = alone();
    for left in (0..4).rev() {
        let server = Server::start(usize::MAX);
        let (known, url) = (file("known", KNOWN), format!("http://{}", server.address));
        let said = drill(&[known.to_str().unwrap(), "--target", &url, "--json"]);
        assert_eq!(said.code, Some(0), "{}\n{}", said.error, said.out);
        let report = said.report();
        let both = [("latency_p50_ms", 0.5), ("latency_p99_ms", 0.99)].map(|(what, quantile)| {
            (figure(&report, what, "people", None), server.took_ms(quantile))
        });
        if both.iter().all(|(told, knows)| (told - knows).abs() <= 0.05 * knows) {
            return;
        }
        // Unless the generator says itself that it was late, it counts.
        let told = format!("told and known: {both:?}, {}", report["schedule"]);
        assert!(said.error.contains(DISOWNED) && left > 0, "{told}");
        eprintln!("measured again: {told}");
    }
}
