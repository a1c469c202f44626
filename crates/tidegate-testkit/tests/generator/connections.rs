//! Connections: used again, opened as needed, and what it means when there are too few.

use crate::load::{MS, OneByOne, Plan, at_once, config, every, get, ran, with_others};
use crate::server::{FullBacklog, Reply, Server, Speaks};
use std::collections::HashSet;
use std::time::Duration;
use tidegate_testkit::generator::{Answer, Driver, Failure, Progress, ScheduledRequest, run};

#[test]
fn an_idle_connection_is_used_again() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(Duration::ZERO));
    let driver = OneByOne::new(100, MS, |_| {});
    let (driver, schedule) = run(config(server.port), get(None), driver).unwrap();
    assert_eq!(driver.seen.len(), 100);
    assert_eq!((server.record().accepted, schedule.connections_max), (1, 1));
    assert_eq!((schedule.due, schedule.sent), (100, 100));
}

#[test]
fn too_few_connections_are_told() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(50 * MS));
    let mut config = config(server.port);
    config.connections_max = 4;
    let ran = ran(config, get(None), Plan::at(at_once(40)));
    assert_eq!(ran.plan.ok(), 40);
    assert_eq!((server.record().accepted, server.record().peak), (4, 4));
    assert_eq!(ran.schedule.no_connection, 36);
    assert!(ran.schedule.late >= 36);
    // Ten rounds of 50 ms: the last is sent in the tenth, and its latency counts from when it was due.
    assert!(ran.schedule.error_max_ms >= 450.0, "{} ms", ran.schedule.error_max_ms);
    // Who waits for a connection is late, and the generator is not: its own error is less by what they waited.
    let own = ran.schedule.own_error_p99_ms;
    assert!(own <= ran.schedule.error_p99_ms - 400.0, "{own} of {}", ran.schedule.error_p99_ms);
    let last = ran.plan.seen.last().unwrap();
    assert!(last.latency() >= 500 * MS);
    assert!(last.at - last.sent < last.latency() / 2);
}

#[test]
fn those_that_wait_are_served_in_order() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(2 * MS));
    let mut config = config(server.port);
    config.connections_max = 1;
    let ran = ran(config, get(None), Plan::at(every(MS / 10, 50)));
    let order: Vec<_> = ran.plan.seen.iter().map(|seen| seen.id).collect();
    assert_eq!(order, (0..50).collect::<Vec<_>>());
}

#[test]
fn a_schedule_with_enough_connections_tells_of_none_missing() {
    let _others = with_others();
    // Long enough for all to arrive before the first is answered.
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(2_000 * MS));
    let ran = ran(config(server.port), get(None), Plan::at(at_once(40)));
    assert_eq!((ran.plan.ok(), ran.schedule.no_connection), (40, 0));
    assert_eq!(server.record().peak, 40);
}

#[test]
fn who_never_had_a_connection_is_unsent() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(60_000 * MS));
    let mut config = config(server.port);
    config.connections_max = 1;
    config.grace = 300 * MS;
    let ran = ran(config, get(None), Plan::at(every(10 * MS, 4)));
    // The one that was sent has waited for the grace time, the others for its connection.
    let ended = [Failure::Deadline, Failure::Unsent].map(|failure| ran.plan.failures(failure));
    assert_eq!(ended, [1, 3]);
    assert_eq!((ran.schedule.sent, ran.schedule.unsent), (1, 3));
    assert!(ran.took >= 330 * MS && ran.took < 20_000 * MS, "{:?}", ran.took);
}

#[test]
fn who_waits_for_a_target_that_takes_no_connections_is_not_unsent() {
    let _others = with_others();
    // Its backlog is full, and nobody accepts: what asks for a connection is not answered at all.
    let full = FullBacklog::new();
    let ran = ran(config(full.port), get(Some(300 * MS)), Plan::at(at_once(20)));
    assert_eq!(ran.plan.failures(Failure::Deadline), 20);
    assert!(ran.plan.seen.iter().all(|seen| !seen.was_sent));
    assert_eq!((ran.schedule.not_connected, ran.schedule.unsent), (20, 0));
}

/// Looks at each tick how many connections are being opened.
struct Opening {
    plan: Plan,
    port: u16,
    most: usize,
}

impl Driver for Opening {
    fn next(&mut self) -> Option<ScheduledRequest> {
        self.plan.next()
    }

    fn ended(&mut self, ended: ScheduledRequest, answer: &Answer<'_>) -> Option<ScheduledRequest> {
        self.plan.ended(ended, answer)
    }

    fn tick(&mut self, _: Duration, progress: &Progress) -> bool {
        self.most = self.most.max(half_open(self.port));
        // Once all are due, there is nothing more to see.
        self.most == 0 || progress.waiting < 500
    }
}

/// Connections to this port that were asked for, and not answered. Counted by their own addresses: the kernel
/// repeats lines of this table when other sockets come and go between two reads of it.
fn half_open(port: u16) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let from = |line: &'_ str| {
        let mut fields = line.split_whitespace().skip(1);
        let (from, to, state) = (fields.next()?, fields.next()?, fields.next()?);
        let is_one = to.ends_with(&format!(":{port:04X}")) && state == "02";
        is_one.then(|| from.to_owned())
    };
    table.lines().filter_map(from).collect::<HashSet<_>>().len()
}

#[test]
fn a_crowd_that_waits_does_not_open_its_connections_all_at_once() {
    let _others = with_others();
    let full = FullBacklog::new();
    let mut config = config(full.port);
    config.connections_max = 4_096;
    let driver = Opening { plan: Plan::at(at_once(500)), port: full.port, most: 0 };
    let (driver, schedule) = run(config, get(None), driver).unwrap();
    assert_eq!(driver.most, 64);
    // They were allowed a connection each, and the target gave none.
    assert_eq!((schedule.no_connection, schedule.unsent), (0, 0));
    assert_eq!(schedule.not_connected, 500);
}
