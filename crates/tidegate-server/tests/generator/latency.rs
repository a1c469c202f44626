//! Latencies are what the server knows it made of them, also when it stands still.

use crate::load::{MS, Plan, Ran, alone, config, every, get, ran};
use crate::server::{Reply, Server, Speaks};
use std::time::Duration;

/// The generator's percentile of the time from due, and the same by the server's own clock.
fn percentile(ran: &Ran, server: &Server, quantile: f64) -> (f64, f64) {
    let record = server.record();
    let mut ours: Vec<_> = ran.plan.seen.iter().map(|seen| ms(seen.latency())).collect();
    let due = |id: u64| ran.plan.seen.iter().find(|seen| seen.id == id).map(|seen| seen.due);
    let mut theirs: Vec<_> = record
        .requests
        .iter()
        .map(|served| ms(served.answered - ran.plan.started) - due(served.id).map_or(0.0, ms))
        .collect();
    assert_eq!(ours.len(), theirs.len());
    ours.sort_by(f64::total_cmp);
    theirs.sort_by(f64::total_cmp);
    let place = (ours.len() as f64 * quantile) as usize;
    (ours[place], theirs[place])
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Within 5 %, some milliseconds for the way of an answer, and what the generator tells of itself: on a machine
/// that others use it may have to wait for the processor, and its answers wait with it.
fn assert_true(ran: &Ran, server: &Server, quantile: f64) -> f64 {
    let (ours, theirs) = percentile(ran, server, quantile);
    let off = (ours - theirs).abs();
    let own = ran.schedule.error_max_ms;
    let told =
        format!("{quantile}: {ours:.1} ms, the server knows {theirs:.1}; own error {own:.1}");
    assert!(off <= 0.05 * theirs + 10.0 + own, "{told}");
    theirs
}

#[test]
fn known_delays_are_measured() {
    let _alone = alone();
    // Nine of ten take 200 … 290 ms, one 800 ms.
    let delay = |id| if id % 10 == 9 { 800 } else { 200 + id % 10 * 10 };
    let server = Server::new(Speaks::Http1, move |id, _| Reply::after(delay(id) as u32 * MS));
    let ran = ran(config(server.port), get(None), Plan::at(every(2 * MS, 500)));
    assert_eq!(ran.plan.ok(), 500);
    for (quantile, at_least) in [(0.1, 200.0), (0.5, 230.0), (0.95, 800.0), (0.99, 800.0)] {
        let truth = assert_true(&ran, &server, quantile);
        assert!(truth >= at_least);
    }
}

#[test]
fn a_stall_is_seen_by_all_that_were_due_meanwhile() {
    let _alone = alone();
    rlimit::increase_nofile_limit(8_192).unwrap();
    // One second of six: a tenth of all requests were due at least 400 ms before its end, a hundredth 940 ms.
    let server = Server::new(Speaks::Http1, |id, _| {
        if id == 2_000 {
            std::thread::sleep(1_000 * MS);
        }
        Reply::after(Duration::ZERO)
    });
    let mut config = config(server.port);
    config.connections_max = 3_000;
    let ran = ran(config, get(None), Plan::at(every(MS, 6_000)));
    assert_eq!(ran.plan.ok(), 6_000);
    let p90 = assert_true(&ran, &server, 0.9);
    let p99 = assert_true(&ran, &server, 0.99);
    assert!(p90 >= 380.0 && p99 >= 920.0, "the server stalled: {p90:.0} and {p99:.0} ms");
    // It went on sending while nothing came back. A closed loop would have sent what it had connections for: some.
    let record = server.record();
    let stalled = record.requests.iter().find(|served| served.id == 2_000).unwrap();
    let during = stalled.received - ran.plan.started..stalled.answered - ran.plan.started;
    let due = ran.plan.seen.iter().filter(|seen| during.contains(&seen.due)).count();
    let sent = ran.plan.seen.iter().filter(|seen| during.contains(&seen.sent)).count();
    assert!(sent > due / 4, "{sent} were sent and {due} were due");
}
