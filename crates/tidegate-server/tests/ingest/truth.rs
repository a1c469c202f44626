//! The promise about a blocked stage once in real time, over real sockets, with the real client: a database that
//! is stopped in the middle, and goes on.

use crate::http::eventually;
use crate::shared::postgres::Postgres;
use crate::support::{Load, TestIngest};
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidegate::signal::BackpressureLevel;
use tidegate::window::WindowConfig;
use tokio::task::block_in_place;

/// The processes of a server, stopped as long as this lives.
struct Stopped(Vec<String>);

impl Stopped {
    fn all_of(server: &Postgres) -> Self {
        let file = fs::read_to_string(server.folder().join("data/postmaster.pid")).unwrap();
        let parent = file.lines().next().unwrap().to_owned();
        // The parent first, so that it makes no more.
        signal("-STOP", std::slice::from_ref(&parent));
        let children = Command::new("pgrep").args(["-P", &parent]).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        let mut processes: Vec<_> = children.lines().map(ToOwned::to_owned).collect();
        signal("-STOP", &processes);
        processes.push(parent);
        Self(processes)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal("-CONT", &self.0);
    }
}

/// Somebody who sleeps for moments, and notes when one of them takes much longer: then the machine was busy with
/// something else, and nobody else can have been in time.
struct Stalls {
    end: Arc<AtomicBool>,
    watching: JoinHandle<Duration>,
}

impl Stalls {
    fn watch() -> Self {
        const MOMENT: Duration = Duration::from_millis(10);
        /// A regulator's tick, halved: what is shorter delays none.
        const MUCH: Duration = Duration::from_millis(50);
        let end = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&end);
        let watching = std::thread::spawn(move || {
            let mut stood_still = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let start = Instant::now();
                std::thread::sleep(MOMENT);
                let late = start.elapsed() - MOMENT;
                if late >= MUCH {
                    stood_still += late;
                }
            }
            stood_still
        });
        Self { end, watching }
    }

    fn end(self) -> Duration {
        self.end.store(true, Ordering::Relaxed);
        self.watching.join().unwrap()
    }
}

fn signal(name: &str, processes: &[String]) {
    // One of them may have ended by itself.
    let _ = Command::new("kill").arg(name).args(processes).status();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocked_store_brings_all_windows_to_the_least_within_5_s_and_they_come_back() {
    let server = block_in_place(|| Postgres::start(&["fsync=off"]));
    let url = server.url("");
    let ingest = TestIngest::start_with(|config| config.store = url);
    let least = WindowConfig::default().window_min;
    let windows = || -> Vec<u64> {
        ingest.stats().pipeline.stages.iter().map(|stage| stage.window).collect()
    };
    let level = || ingest.stats().pipeline.signal.level;
    let load = Load::start(ingest.frames, &["a", "b", "c", "d"]);
    eventually("a window grows", || windows().iter().any(|window| *window > least)).await;

    let stopped = block_in_place(|| Stopped::all_of(&server));
    let (since, stalls) = (Instant::now(), Stalls::watch());
    let blocked =
        || windows().iter().all(|window| *window == least) && level() == BackpressureLevel::Reject;
    eventually("every window is the least, at REJECT", blocked).await;
    let (took, stood_still) = (since.elapsed(), stalls.end());
    let ran = took.saturating_sub(stood_still);
    assert!(ran <= Duration::from_secs(5), "{took:?}, of which {stood_still:?} stood still");
    let pipeline = ingest.stats().pipeline;
    assert!(pipeline.memory_bytes <= pipeline.budget_bytes);

    drop(stopped);
    let stored = ingest.stats().counts.records_stored;
    eventually("records flow", || ingest.stats().counts.records_stored > stored + 10_000).await;
    eventually("the level comes down", || level() < BackpressureLevel::Reject).await;
    eventually("a window grows again", || windows().iter().any(|window| *window > least)).await;
    let sent = load.finish().await;
    for (tenant, sent) in ["a", "b", "c", "d"].into_iter().zip(sent) {
        assert_eq!(ingest.stored(tenant).await, sent, "{tenant}");
    }
}
