//! Requests that the driver hands back.

use crate::load::{MS, Seen, config, get, scheduled, with_others};
use crate::server::{ClosedPort, Reply, Server, Speaks};
use http::StatusCode;
use std::collections::HashMap;
use std::time::Duration;
use tidegate_testkit::generator::{Answer, Driver, Failure, Progress, ScheduledRequest, run};

/// Comes back after a refusal or a failure, 100 ms later, until it has tried so often.
struct Retrying {
    next: u64,
    count: u64,
    tries_max: usize,
    tries: HashMap<u64, Vec<Seen>>,
}

impl Retrying {
    fn new(count: u64, tries_max: usize) -> Self {
        Self { next: 0, count, tries_max, tries: HashMap::new() }
    }
}

impl Driver for Retrying {
    fn next(&mut self) -> Option<ScheduledRequest> {
        self.next += 1;
        (self.next <= self.count).then(|| scheduled(MS * self.next as u32, self.next))
    }

    fn ended(
        &mut self,
        scheduled: ScheduledRequest,
        answer: &Answer<'_>,
    ) -> Option<ScheduledRequest> {
        let tries = self.tries.entry(scheduled.id).or_default();
        tries.push(Seen::new(&scheduled, answer));
        let is_good = answer.result.is_ok_and(|head| head.status.is_success());
        let again = !is_good && tries.len() < self.tries_max;
        again.then(|| ScheduledRequest { due: answer.at + 100 * MS, ..scheduled })
    }
}

#[test]
fn a_retry_is_sent_when_it_is_due() {
    let _others = with_others();
    // The first 100 are refused, whoever they are.
    let server = Server::new(Speaks::Http1, |_, place| Reply {
        status: if place < 100 { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK },
        ..Reply::after(Duration::ZERO)
    });
    let (driver, schedule) = run(config(server.port), get(None), Retrying::new(50, 9)).unwrap();
    let tries: usize = driver.tries.values().map(Vec::len).sum();
    assert_eq!(tries, 150);
    assert_eq!((schedule.due, schedule.sent), (150, 150));
    assert_eq!(server.record().requests.len(), 150);
    for tries in driver.tries.values() {
        assert_eq!(tries.last().unwrap().result, Ok(StatusCode::OK));
        for pair in tries.windows(2) {
            assert_eq!(pair[1].due, pair[0].at + 100 * MS);
            assert!(pair[1].sent >= pair[1].due);
        }
    }
}

#[test]
fn failures_can_come_back_too() {
    let _others = with_others();
    let driver = Retrying::new(5, 3);
    let closed = ClosedPort::new();
    let (driver, schedule) = run(config(closed.port), get(None), driver).unwrap();
    assert!(driver.tries.values().all(|tries| tries.len() == 3));
    assert_eq!((schedule.due, schedule.not_connected, schedule.unsent), (15, 15, 0));
}

#[test]
fn nothing_comes_back_after_the_end() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(60_000 * MS));
    let mut config = config(server.port);
    config.grace = 100 * MS;
    let (driver, schedule) = run(config, get(None), Retrying::new(4, usize::MAX)).unwrap();
    for tries in driver.tries.values() {
        let results: Vec<_> = tries.iter().map(|seen| seen.result).collect();
        assert_eq!(results, [Err(Failure::Deadline), Err(Failure::Unsent)]);
    }
    assert_eq!((schedule.sent, schedule.unsent), (4, 4));
}

/// Comes back in a time that can't be told, and stops a little later.
#[derive(Default)]
struct Never {
    is_begun: bool,
    ended: Vec<Failure>,
}

impl Driver for Never {
    fn next(&mut self) -> Option<ScheduledRequest> {
        (!std::mem::replace(&mut self.is_begun, true)).then(|| scheduled(Duration::ZERO, 0))
    }

    fn ended(
        &mut self,
        scheduled: ScheduledRequest,
        answer: &Answer<'_>,
    ) -> Option<ScheduledRequest> {
        self.ended.extend(answer.result.err());
        Some(ScheduledRequest { due: Duration::MAX, ..scheduled })
    }

    fn tick(&mut self, now: Duration, _: &Progress) -> bool {
        now < 300 * MS
    }
}

#[test]
fn what_is_never_due_is_held_until_the_end() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(Duration::ZERO));
    let (driver, schedule) = run(config(server.port), get(Some(MS)), Never::default()).unwrap();
    assert_eq!(driver.ended.last(), Some(&Failure::Unsent));
    assert_eq!((schedule.due, schedule.unsent), (2, 1));
}
