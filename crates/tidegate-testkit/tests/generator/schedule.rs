//! Requests are sent on schedule, independent of responses, and the generator reports its accuracy.

use crate::load::{
    MS, Plan, Seen, alone, at_once, config, every, get, ran, scheduled, with_others,
};
use crate::server::{ClosedPort, Reply, Server, Speaks};
use std::time::{Duration, Instant};
use tidegate_testkit::generator::{
    Answer, Driver, Failure, GeneratorConfig, Progress, ScheduledRequest, Template, run,
};

#[test]
fn answers_are_not_waited_for() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(900 * MS));
    let ran = ran(config(server.port), get(None), Plan::at(every(MS, 300)));
    assert_eq!(ran.plan.ok(), 300);
    let first_answer = ran.plan.seen.iter().map(|seen| seen.at).min().unwrap();
    let before = ran.plan.seen.iter().filter(|seen| seen.sent < first_answer).count();
    // The last is due 600 ms before the first answer: only who stood still for so long sends it later.
    assert!(before == 300 || ran.schedule.error_max_ms >= 600.0, "{before} of 300");
    assert_eq!(ran.schedule.no_connection, 0);
}

#[test]
fn an_even_rate_stays_even() {
    let _alone = alone();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(Duration::ZERO));
    let ran = ran(config(server.port), get(None), Plan::at(every(5 * MS, 200)));
    assert_eq!(ran.plan.ok(), 200);
    assert!(ran.plan.seen.iter().all(|seen| seen.sent >= seen.due), "nothing is sent early");
    let (p50, p99) = (ran.schedule.error_p50_ms, ran.schedule.error_p99_ms);
    assert!(p50 <= p99 && p99 <= ran.schedule.error_max_ms);
    // Far from what is reached on an idle machine: others may use this one.
    assert!(p50 < 20.0, "half of all were sent more than {p50} ms late");
    let record = server.record();
    let half = ran.plan.started + 500 * MS;
    let early = record.requests.iter().filter(|served| served.received < half).count();
    assert!(early <= 100, "{early} of 200 in the first half, in which 100 are due");
    let sent = ran.plan.seen.iter().filter(|seen| seen.sent < 500 * MS).count();
    // Those that were due while this machine stood still come later.
    let late = (ran.schedule.error_max_ms / 5.0).ceil() as usize;
    assert!(sent + late >= 85, "{sent} of 200 in the first half, and at most {late} late");
}

/// Asleep and awake take turns: gaps of 5 ms, and three requests 50 µs apart after each.
#[test]
fn who_waits_awake_sends_nothing_early_and_takes_every_answer() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(MS));
    let mut config = config(server.port);
    config.busy_wait = Duration::from_micros(200);
    let due = (0..300).map(|number| 5 * MS * (number / 3) + MS / 20 * (number % 3));
    let ran = ran(config, get(None), Plan::at(due));
    assert_eq!(ran.plan.ok(), 300);
    assert!(ran.plan.seen.iter().all(|seen| seen.sent >= seen.due), "nothing is sent early");
}

/// A thousand are due at once and there are few connections: answers that free them must be taken between sends.
#[test]
fn who_is_behind_still_takes_answers() {
    let _others = with_others();
    for busy_wait in [Duration::ZERO, MS, Duration::MAX] {
        let server = Server::new(Speaks::Http1, |_, _| Reply::after(Duration::ZERO));
        let mut config = config(server.port);
        (config.connections_max, config.busy_wait) = (4, busy_wait);
        let ran = ran(config, get(None), Plan::at(at_once(1_000)));
        assert_eq!(ran.plan.ok(), 1_000, "{busy_wait:?}");
        let first_answer = ran.plan.seen.iter().map(|seen| seen.at).min().unwrap();
        let before = ran.plan.seen.iter().filter(|seen| seen.sent < first_answer).count();
        assert!(before <= 4, "{before} were sent on four connections before one answered");
    }
}

#[test]
fn a_burst_goes_out_at_once() {
    let _others = with_others();
    // Long enough for all of a burst to arrive before the first is answered, and for all to be answered before
    // the next.
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(2_000 * MS));
    let bursts = at_once(200).chain(every(Duration::ZERO, 200).map(|_| 5_000 * MS));
    let ran = ran(config(server.port), get(None), Plan::at(bursts));
    assert_eq!(ran.plan.ok(), 400);
    assert_eq!(server.record().peak, 200);
    // The second burst finds the connections of the first.
    assert_eq!(server.record().accepted, 200);
    assert_eq!(ran.schedule.connections_max, 200);
}

#[test]
fn the_schedules_error_is_that_of_each_request() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(20 * MS));
    let mut config = config(server.port);
    config.connections_max = 1;
    let ran = ran(config, get(None), Plan::at(at_once(20)));
    let mut errors: Vec<_> = ran.plan.seen.iter().map(|seen| seen.sent - seen.due).collect();
    errors.sort();
    let told = &ran.schedule;
    for (told_ms, place) in
        [(told.error_p50_ms, 9), (told.error_p99_ms, 19), (told.error_max_ms, 19)]
    {
        let exact_ms = errors[place].as_secs_f64() * 1e3;
        assert!((told_ms / exact_ms - 1.0).abs() < 0.01, "{told_ms} ms, exactly {exact_ms} ms");
    }
    let late = errors.iter().filter(|error| **error > MS).count() as u64;
    assert_eq!(ran.schedule.late, late);
}

/// Stops at its first tick.
struct Stopping {
    seen: Vec<Seen>,
    progress: Progress,
    next: u32,
}

impl Driver for Stopping {
    fn next(&mut self) -> Option<ScheduledRequest> {
        self.next += 1;
        Some(scheduled(MS * self.next, self.next.into()))
    }

    fn ended(
        &mut self,
        scheduled: ScheduledRequest,
        answer: &Answer<'_>,
    ) -> Option<ScheduledRequest> {
        self.seen.push(Seen::new(&scheduled, answer));
        Some(scheduled)
    }

    fn tick(&mut self, _: Duration, progress: &Progress) -> bool {
        self.progress = *progress;
        progress.waiting == 0
    }
}

#[test]
fn a_driver_can_look_and_stop() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(60_000 * MS));
    let mut config = config(server.port);
    config.connections_max = 10;
    let driver = Stopping { seen: Vec::new(), progress: Progress::default(), next: 0 };
    let begin = Instant::now();
    let (driver, schedule) = run(config, get(None), driver).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(20), "a third of what an answer takes");
    let Progress { in_flight, waiting, connections } = driver.progress;
    assert_eq!((in_flight, connections), (10, 10));
    assert!(waiting > 0);
    let ended = |failure| driver.seen.iter().filter(|seen| seen.result == Err(failure)).count();
    assert_eq!(ended(Failure::Deadline), 10);
    // Those that waited, and the ten that were handed back too late.
    assert_eq!(ended(Failure::Unsent), waiting + 10);
    assert_eq!(schedule.unsent, waiting as u64 + 10);
}

#[test]
fn what_can_not_be_used_is_refused() {
    let refused = |config: GeneratorConfig, template: Template| {
        let error = run(config, vec![template], Plan::at(at_once(1))).map(drop).unwrap_err();
        error.to_string()
    };
    let closed = ClosedPort::new();
    let config = config(closed.port);
    let target =
        |target: &str| GeneratorConfig { target: target.parse().unwrap(), ..config.clone() };
    let said = refused(target("https://127.0.0.1:1"), Template::get("/"));
    assert!(said.contains("only http"), "{said}");
    assert!(refused(target("/path"), Template::get("/")).contains("no host"));
    let none = GeneratorConfig { connections_max: 0, ..config.clone() };
    assert!(refused(none, Template::get("/")).contains("at least 1"));
    assert!(refused(config.clone(), Template::get("/a b")).contains("/a b"));
}

#[test]
fn a_request_that_can_not_be_made_is_unsent() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(Duration::ZERO));
    let mut plan = Plan::at([]);
    let bad_suffix = ScheduledRequest { suffix: " ".to_owned(), ..ScheduledRequest::new(MS, 0, 1) };
    plan.add([bad_suffix, ScheduledRequest::new(MS, 7, 2), ScheduledRequest::new(2 * MS, 0, 3)]);
    let ran = ran(config(server.port), get(None), plan);
    assert_eq!((ran.plan.failures(Failure::Unsent), ran.plan.ok()), (2, 1));
    assert_eq!(server.record().requests.len(), 1);
}
