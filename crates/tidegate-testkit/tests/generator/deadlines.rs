//! Clients that give up.

use crate::load::{MS, Plan, at_once, config, get, ran, scheduled, with_others};
use crate::server::{Reply, Server, Speaks};
use std::time::{Duration, Instant};
use tidegate_testkit::generator::{Failure, ScheduledRequest, Template};

/// Much more than a deadline, much less than what the server would take.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_deadline_counts_from_when_the_request_was_due() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |id, _| match id {
        0..20 => Reply::after(60_000 * MS),
        _ => Reply::after(Duration::ZERO),
    });
    // The last is meant to be answered, on however slow a machine.
    let templates = [get(Some(200 * MS)), get(None)].concat();
    let mut plan = Plan::at(at_once(20));
    plan.add([ScheduledRequest { template: 1, ..scheduled(800 * MS, 20) }]);
    let ran = ran(config(server.port), templates, plan);
    assert_eq!((ran.plan.failures(Failure::Deadline), ran.plan.ok()), (20, 1));
    let late = ran.plan.seen.iter().filter(|seen| seen.result.is_err()).map(|seen| seen.latency());
    assert!(late.clone().all(|latency| latency >= 200 * MS && latency < SOON));
    // A connection whose answer is still to come can't be used for anything else.
    let begin = Instant::now();
    while server.record().closed < 20 {
        assert!(begin.elapsed() < SOON, "{} of 20 were closed", server.record().closed);
        std::thread::sleep(MS);
    }
}

#[test]
fn patience_in_line_is_patience_too() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(60_000 * MS));
    let mut config = config(server.port);
    config.connections_max = 1;
    // Long enough to connect and to send the first.
    let patience = 2_000 * MS;
    let ran = ran(config, get(Some(patience)), Plan::at(at_once(10)));
    assert_eq!(ran.plan.failures(Failure::Deadline), 10);
    assert!(ran.plan.seen.iter().all(|seen| seen.latency() >= patience));
    assert_eq!((ran.schedule.sent, ran.schedule.unsent), (1, 9));
    assert_eq!(server.record().requests.len(), 1);
    assert!(ran.took < SOON);
}

#[test]
fn each_template_has_its_own() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(400 * MS));
    let deadline = |deadline| Template { deadline, ..Template::get("/") };
    let templates = vec![deadline(Some(100 * MS)), deadline(None), deadline(Some(5_000 * MS))];
    let mut plan = Plan::at([]);
    // In turn on the same connections, so that a short patience follows a long one and the reverse.
    plan.add((0..30).map(|id| ScheduledRequest {
        template: (id % 3) as u16,
        ..scheduled(MS * (id as u32 * 20), id)
    }));
    let ran = ran(config(server.port), templates, plan);
    for seen in &ran.plan.seen {
        let is_short = seen.id % 3 == 0;
        assert_eq!(seen.result.is_err(), is_short, "{seen:?}");
        assert!(!is_short || seen.latency() < 400 * MS + SOON);
    }
}
