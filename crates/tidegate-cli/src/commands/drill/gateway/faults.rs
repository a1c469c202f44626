//! Injects a scenario's faults into mock upstreams. Each fault is set with its duration, so that a killed drill
//! leaves no fault behind.

use super::blocking_http::{Reply, request};
use hyper::Uri;
use serde_json::{Map, Value, json};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tidegate_sim::scenario::{Fault, FaultKind, Scenario};

/// Shortest duration of a fault.
const SHORTEST: Duration = Duration::from_millis(1);

/// Longest duration that a mock accepts.
const LONGEST: Duration = Duration::from_secs(3600);

/// Thread that sets each fault when it is due.
pub struct Timeline {
    start: Option<Sender<Instant>>,
    thread: Option<JoinHandle<UnsetFaults>>,
}

/// Faults that could not be set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnsetFaults {
    /// Faults that at least one upstream did not accept.
    pub faults: Vec<Fault>,
    /// Those of them that no upstream accepted.
    pub set_at_none: Vec<Fault>,
    /// One note for each upstream that did not accept a fault, with the reason.
    pub notes: Vec<String>,
}

/// Fault of one upstream, with its time.
#[derive(Clone, Debug, PartialEq)]
struct ScheduledFault {
    from: Duration,
    until: Duration,
    /// Index of the upstream.
    upstream: usize,
    settings: Map<String, Value>,
    fault: Fault,
}

// === impl Timeline ===

impl Timeline {
    /// Prepares the faults of this scenario; none is set before [`start`](Self::start).
    pub fn new(scenario: &Scenario, upstreams: Vec<Uri>) -> std::io::Result<Self> {
        let due = schedule(&scenario.faults, upstreams.len());
        let (start, started) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("tidegate-faults".to_owned())
            .spawn(move || follow(due, &upstreams, &started))?;
        Ok(Self { start: Some(start), thread: Some(thread) })
    }

    /// Sets the start of the load, from which fault times count.
    pub fn start(&self, at: Instant) {
        if let Some(start) = &self.start {
            // The thread has ended: there was no fault, or all are set.
            let _ = start.send(at);
        }
    }

    /// Stops and returns the faults that could not be set.
    pub fn end(mut self) -> UnsetFaults {
        drop(self.start.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

fn follow(due: Vec<ScheduledFault>, upstreams: &[Uri], signal: &Receiver<Instant>) -> UnsetFaults {
    let (mut unset, mut set) = (UnsetFaults::default(), Vec::new());
    let Ok(start) = signal.recv() else { return unset };
    for due in due {
        let left = (start + due.from).saturating_duration_since(Instant::now());
        if signal.recv_timeout(left) == Err(RecvTimeoutError::Disconnected) {
            return unset;
        }
        let lasts = due.until.saturating_sub(start.elapsed()).max(SHORTEST);
        let Some(upstream) = upstreams.get(due.upstream) else { continue };
        let why = match request(upstream, "/mock/fault", Some(&due.body(lasts))) {
            Ok(Reply { status: 200..=299, .. }) => {
                set.push(due.fault);
                continue;
            }
            Ok(Reply { status, body, .. }) => format!("{status} {body}"),
            Err(error) => error.to_string(),
        };
        unset.notes.push(format!("{} was not set at {upstream}: {why}", due.fault.kind));
        if !unset.faults.contains(&due.fault) {
            unset.faults.push(due.fault);
        }
    }
    // All faults are set: wait for the end of the drill.
    while signal.recv().is_ok() {}
    unset.set_at_none = unset.faults.iter().filter(|it| !set.contains(it)).cloned().collect();
    unset
}

/// Every fault at every upstream that it hits, in order of time.
fn schedule(faults: &[Fault], upstreams: usize) -> Vec<ScheduledFault> {
    let mut scheduled = Vec::new();
    for fault in faults {
        let Some((key, value)) = setting(fault) else { continue };
        for upstream in (0..upstreams).filter(|upstream| fault.hits(*upstream as u16)) {
            scheduled.push(ScheduledFault {
                from: Duration::from_secs_f64(fault.from_s),
                until: Duration::from_secs_f64(fault.until_s),
                upstream,
                settings: Map::from_iter([(key.to_owned(), value.clone())]),
                fault: fault.clone(),
            });
        }
    }
    scheduled.sort_by_key(|due| due.from);
    scheduled
}

/// Field of `POST /mock/fault` that sets this fault.
fn setting(fault: &Fault) -> Option<(&'static str, Value)> {
    Some(match fault.kind {
        FaultKind::Slow => ("slow_factor", json!(fault.factor?)),
        FaultKind::Capacity => ("slots_share", json!(fault.share?)),
        FaultKind::Fails => ("failure_rate", json!(fault.share?)),
        FaultKind::Dead => ("dead", json!(true)),
        FaultKind::Cut => ("cut", json!(true)),
        // These faults are not of upstreams.
        FaultKind::Blocked | FaultKind::Loss | FaultKind::Delay | FaultKind::ManagerDead => {
            return None;
        }
    })
}

// === impl ScheduledFault ===

impl ScheduledFault {
    fn body(&self, lasts: Duration) -> String {
        let mut body = self.settings.clone();
        body.insert("for_ms".to_owned(), json!(lasts.min(LONGEST).as_millis() as u64));
        Value::Object(body).to_string()
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
    fn each_upstream_that_a_fault_hits_gets_it_in_order_of_time() {
        let faults = [fault(FaultKind::Slow, 3.0, &[1]), fault(FaultKind::Capacity, 1.0, &[])];
        let scheduled = schedule(&faults, 2);
        let targets: Vec<_> =
            scheduled.iter().map(|due| (due.upstream, due.from.as_secs())).collect();
        assert_eq!(targets, [(0, 1), (1, 1), (1, 3)]);
        let lasts = Duration::from_millis(1900);
        assert_eq!(scheduled[0].body(lasts), r#"{"for_ms":1900,"slots_share":0.5}"#);
        assert_eq!(scheduled[2].body(lasts), r#"{"for_ms":1900,"slow_factor":10.0}"#);
    }

    #[test]
    fn without_a_start_nothing_happens() {
        let scenario = Scenario::read(
            "a",
            r#"
            about = "a fault"
            duration_s = 1
            upstreams = { count = 1, slots = 1, queue = 1 }
            class = [{ name = "a", share = 1, service = { kind = "fixed", ms = 1 } }]
            fault = [{ kind = "dead", from_s = 0, until_s = 1 }]
            "#,
        );
        let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", upstream.local_addr().unwrap());
        let timeline = || {
            let upstreams = vec![url.parse().unwrap()];
            Timeline::new(scenario.as_ref().unwrap(), upstreams).unwrap()
        };
        assert_eq!(timeline().end(), UnsetFaults::default());
        upstream.set_nonblocking(true).unwrap();
        assert_eq!(upstream.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock, "nobody came");
        upstream.set_nonblocking(false).unwrap();
        let started = timeline();
        started.start(Instant::now());
        // The upstream accepts and does not respond.
        drop(upstream.accept().unwrap());
        let unset = started.end();
        assert!(unset.notes[0].starts_with(&format!("dead was not set at {url}")));
        assert_eq!((unset.faults.len(), unset.set_at_none.len()), (1, 1));
    }
}
