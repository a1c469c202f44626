//! Makes workers fail when the scenario says so. Every fault is set for as long as it lasts, so that a drill that
//! is killed leaves nothing broken.

use super::ask::{Reply, ask};
use hyper::Uri;
use serde_json::{Map, Value, json};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tidegate_sim::scenario::{Fault, FaultKind, Scenario};

/// Below this a fault is over before it began.
const SHORTEST: Duration = Duration::from_millis(1);

/// What a worker takes at most.
const LONGEST: Duration = Duration::from_secs(3600);

/// Waits for when faults are due, on a thread of its own.
pub struct Timeline {
    start: Option<Sender<Instant>>,
    thread: Option<JoinHandle<Unset>>,
}

/// What could not be set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unset {
    /// Faults that some worker did not take.
    pub faults: Vec<Fault>,
    /// Of those, the ones that no worker took.
    pub nowhere: Vec<Fault>,
    /// Where each was not set, and why.
    pub notes: Vec<String>,
}

/// A fault that is due at a worker.
#[derive(Clone, Debug, PartialEq)]
struct Due {
    from: Duration,
    until: Duration,
    /// The place of the worker in the list.
    worker: usize,
    what: Map<String, Value>,
    fault: Fault,
}

// === impl Timeline ===

impl Timeline {
    /// The faults of this scenario in these workers. Nothing happens before it is started.
    pub fn new(scenario: &Scenario, workers: Vec<Uri>) -> std::io::Result<Self> {
        let due = dues(&scenario.faults, workers.len());
        let (start, started) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("tidegate-faults".to_owned())
            .spawn(move || follow(due, &workers, &started))?;
        Ok(Self { start: Some(start), thread: Some(thread) })
    }

    /// The load began then.
    pub fn start(&self, at: Instant) {
        if let Some(start) = &self.start {
            // Nobody to hear it: there was no fault, or all are set.
            let _ = start.send(at);
        }
    }

    /// Sets no more faults, and says what could not be set.
    pub fn end(mut self) -> Unset {
        drop(self.start.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

fn follow(due: Vec<Due>, workers: &[Uri], signal: &Receiver<Instant>) -> Unset {
    let (mut unset, mut set) = (Unset::default(), Vec::new());
    let Ok(start) = signal.recv() else { return unset };
    for due in due {
        let left = (start + due.from).saturating_duration_since(Instant::now());
        if signal.recv_timeout(left) == Err(RecvTimeoutError::Disconnected) {
            return unset;
        }
        let lasts = due.until.saturating_sub(start.elapsed()).max(SHORTEST);
        let Some(worker) = workers.get(due.worker) else { continue };
        let why = match ask(worker, "/mock/fault", Some(&due.order(lasts))) {
            Ok(Reply { status: 200..=299, .. }) => {
                set.push(due.fault);
                continue;
            }
            Ok(Reply { status, says, .. }) => format!("{status} {says}"),
            Err(error) => error.to_string(),
        };
        unset.notes.push(format!("{} was not set at {worker}: {why}", due.fault.kind));
        if !unset.faults.contains(&due.fault) {
            unset.faults.push(due.fault);
        }
    }
    // What was to come has come; the end is waited for, or a second start would be.
    while signal.recv().is_ok() {}
    unset.nowhere = unset.faults.iter().filter(|it| !set.contains(it)).cloned().collect();
    unset
}

/// Every fault at every worker that it hits, in order of time.
fn dues(faults: &[Fault], workers: usize) -> Vec<Due> {
    let mut dues = Vec::new();
    for fault in faults {
        let Some((key, value)) = order(fault) else { continue };
        for worker in (0..workers).filter(|worker| fault.hits(*worker as u16)) {
            dues.push(Due {
                from: Duration::from_secs_f64(fault.from_s),
                until: Duration::from_secs_f64(fault.until_s),
                worker,
                what: Map::from_iter([(key.to_owned(), value.clone())]),
                fault: fault.clone(),
            });
        }
    }
    dues.sort_by_key(|due| due.from);
    dues
}

/// What a worker is told.
fn order(fault: &Fault) -> Option<(&'static str, Value)> {
    Some(match fault.kind {
        FaultKind::Slow => ("slow_factor", json!(fault.factor?)),
        FaultKind::Capacity => ("places_share", json!(fault.share?)),
        FaultKind::Fails => ("failure_rate", json!(fault.share?)),
        FaultKind::Dead => ("dead", json!(true)),
        FaultKind::Cut => ("cut", json!(true)),
        // Not of workers.
        FaultKind::Blocked | FaultKind::Loss | FaultKind::Delay | FaultKind::ManagerDead => {
            return None;
        }
    })
}

// === impl Due ===

impl Due {
    fn order(&self, lasts: Duration) -> String {
        let mut order = self.what.clone();
        order.insert("for_ms".to_owned(), json!(lasts.min(LONGEST).as_millis() as u64));
        Value::Object(order).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::net::TcpListener;

    fn fault(kind: FaultKind, from_s: f64, at: &[u16]) -> Fault {
        Fault {
            kind,
            from_s,
            until_s: from_s + 2.0,
            at: at.to_vec(),
            stage: None,
            factor: Some(10.0),
            share: Some(0.5),
            added_ms: None,
        }
    }

    #[test]
    fn each_worker_that_a_fault_hits_is_told_in_order_of_time() {
        let faults = [fault(FaultKind::Slow, 3.0, &[1]), fault(FaultKind::Capacity, 1.0, &[])];
        let dues = dues(&faults, 2);
        let told: Vec<_> = dues.iter().map(|due| (due.worker, due.from.as_secs())).collect();
        assert_eq!(told, [(0, 1), (1, 1), (1, 3)]);
        let lasts = Duration::from_millis(1900);
        assert_eq!(dues[0].order(lasts), r#"{"for_ms":1900,"places_share":0.5}"#);
        assert_eq!(dues[2].order(lasts), r#"{"for_ms":1900,"slow_factor":10.0}"#);
    }

    #[test]
    fn without_a_start_nothing_happens() {
        let scenario = Scenario::read(
            "a",
            r#"
            about = "a fault"
            duration_s = 1
            workers = { count = 1, places = 1, waiting = 1 }
            class = [{ name = "a", share = 1, service = { kind = "fixed", ms = 1 } }]
            fault = [{ kind = "dead", from_s = 0, until_s = 1 }]
            "#,
        );
        let worker = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", worker.local_addr().unwrap());
        let timeline = || {
            let workers = vec![url.parse().unwrap()];
            Timeline::new(scenario.as_ref().unwrap(), workers).unwrap()
        };
        assert_eq!(timeline().end(), Unset::default());
        worker.set_nonblocking(true).unwrap();
        assert_eq!(worker.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock, "nobody came");
        worker.set_nonblocking(false).unwrap();
        let started = timeline();
        started.start(Instant::now());
        // It is asked, and says nothing.
        drop(worker.accept().unwrap());
        let unset = started.end();
        assert!(unset.notes[0].starts_with(&format!("dead was not set at {url}")));
        assert_eq!((unset.faults.len(), unset.nowhere.len()), (1, 1));
    }
}
