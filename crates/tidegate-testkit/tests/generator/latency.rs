//! Latencies are what the server knows it made of them, also when it stands still.

use crate::load::{MS, Plan, Ran, Seen, alone, config, every, get, ran, scheduled};
use crate::server::{Reply, Served, Server, Speaks};
use std::collections::HashMap;
use std::time::Duration;

/// Tolerance of a percentile, relative to the server's own.
const TOLERANCE: f64 = 0.05;

/// Retries of a measurement that the generator reports as late.
const TRIES: usize = 4;

/// Requests from this number on are answered at once. They are there to show whether the generator was.
const PROBES: u64 = 1_000_000;

/// A request as both sides saw it.
struct Both {
    seen: Seen,
    served: Served,
}

/// Latencies of both sides, without probes.
fn both(ran: &Ran, server: &Server) -> Vec<Both> {
    let record = server.record();
    let by_id: HashMap<u64, Served> =
        record.requests.iter().map(|served| (served.id, *served)).collect();
    let measured = ran.plan.seen.iter().filter(|seen| seen.id < PROBES);
    measured.map(|seen| Both { seen: seen.clone(), served: by_id[&seen.id] }).collect()
}

/// The generator's percentile of the time from due, and the same by the server's own clock: both have what the
/// machine did to the schedule and to the server's timers.
fn percentile(both: &[Both], ran: &Ran, quantile: f64) -> (f64, f64) {
    let exact = |mut times: Vec<Duration>| {
        times.sort();
        let rank = (times.len() as f64 * quantile).ceil() as usize;
        times[rank.max(1) - 1].as_secs_f64() * 1e3
    };
    let theirs = |it: &Both| it.served.answered - ran.plan.started - it.seen.due;
    (
        exact(both.iter().map(|it| it.seen.latency()).collect()),
        exact(both.iter().map(theirs).collect()),
    )
}

/// Which of these percentiles are further off than they may be.
fn wrong(both: &[Both], ran: &Ran, quantiles: &[f64]) -> Vec<String> {
    let told = |quantile: &f64| {
        let (ours, theirs) = percentile(both, ran, *quantile);
        let is_wrong = (ours - theirs).abs() > TOLERANCE * theirs;
        is_wrong.then(|| format!("{quantile}: {ours:.1} ms, the server knows {theirs:.1} ms"))
    };
    quantiles.iter().filter_map(told).collect()
}

/// Asserts that no latency is below the server's, on any machine.
fn assert_causal(both: &[Both], ran: &Ran) {
    for Both { seen, served } in both {
        assert!(ran.plan.started + seen.sent <= served.received, "{seen:?} {served:?}");
        assert!(ran.plan.started + seen.at >= served.answered, "{seen:?} {served:?}");
    }
}

/// Measures until the percentiles are right. That they were not counts at once, unless the generator says of
/// itself that it was late by as much as they may be off: then the machine had no time for it, and it is asked
/// again.
fn assert_right(quantiles: &[f64], run: impl Fn() -> (Ran, Server)) -> (Ran, Server) {
    for left in (0..TRIES).rev() {
        let (ran, server) = run();
        let both = both(&ran, &server);
        assert_causal(&both, &ran);
        let wrong = wrong(&both, &ran, quantiles);
        if wrong.is_empty() {
            return (ran, server);
        }
        let late = ran.plan.seen.iter().map(|seen| seen.sent - seen.due).max().unwrap();
        let late_ms = late.as_secs_f64() * 1e3;
        let truths = quantiles.iter().map(|quantile| percentile(&both, &ran, *quantile).1);
        let is_disowned = late_ms > TOLERANCE * truths.fold(f64::MAX, f64::min);
        assert!(is_disowned && left > 0, "{wrong:?}, and it was late by {late_ms} ms");
        eprintln!("measured again, for it was late by {late_ms} ms: {wrong:?}");
    }
    unreachable!("the last try is judged");
}

#[test]
fn known_delays_are_measured() {
    let _alone = alone();
    // Each percentile that is asked for lies within a group, not between two.
    let delay = |id| match id % 10 {
        _ if id >= PROBES => 0,
        0..6 => 400,
        6..9 => 900,
        _ => 3_000,
    };
    let quantiles = [0.1, 0.3, 0.5, 0.75, 0.95, 0.99];
    let (ran, server) = assert_right(&quantiles, || {
        let server = Server::new(Speaks::Http1, move |id, _| Reply::after(delay(id) * MS));
        let measured = every(4 * MS, 500).zip(0..).map(|(due, id)| scheduled(due, id));
        let probes = every(10 * MS, 500).zip(PROBES..).map(|(due, id)| scheduled(due, id));
        let mut scheduled_requests: Vec<_> = measured.chain(probes).collect();
        scheduled_requests.sort_by_key(|scheduled| scheduled.due);
        let mut plan = Plan::at([]);
        plan.add(scheduled_requests);
        (ran(config(server.port), get(None), plan), server)
    });
    assert_eq!(ran.plan.ok(), 1_000);
    let both = both(&ran, &server);
    for (quantile, at_least) in [(0.1, 400.0), (0.5, 400.0), (0.75, 900.0), (0.99, 3_000.0)] {
        let (_, theirs) = percentile(&both, &ran, quantile);
        assert!(theirs >= at_least, "{quantile}: the server took {theirs} ms");
    }
}

#[test]
fn a_stall_is_seen_by_all_that_were_due_meanwhile() {
    let _alone = alone();
    rlimit::increase_nofile_limit(8_192).unwrap();
    // One second of six: a tenth of all requests were due at least 400 ms before its end, a hundredth 940 ms.
    let (ran, server) = assert_right(&[0.9, 0.99], || {
        let server = Server::new(Speaks::Http1, |id, _| {
            if id == 2_000 {
                std::thread::sleep(1_000 * MS);
            }
            Reply::after(Duration::ZERO)
        });
        let mut config = config(server.port);
        config.connections_max = 3_000;
        (ran(config, get(None), Plan::at(every(MS, 6_000))), server)
    });
    assert_eq!(ran.plan.ok(), 6_000);
    let both = both(&ran, &server);
    let [p90, p99] = [0.9, 0.99].map(|quantile| percentile(&both, &ran, quantile).1);
    assert!(p90 >= 380.0 && p99 >= 920.0, "the server stalled: {p90:.0} and {p99:.0} ms");
    // It went on sending while nothing came back. A closed loop would have sent what it had connections for: some.
    let record = server.record();
    let stalled = record.requests.iter().find(|served| served.id == 2_000).unwrap();
    let during = stalled.received - ran.plan.started..stalled.answered - ran.plan.started;
    let due = ran.plan.seen.iter().filter(|seen| during.contains(&seen.due)).count();
    let sent = ran.plan.seen.iter().filter(|seen| during.contains(&seen.sent)).count();
    assert!(sent > due / 4, "{sent} were sent and {due} were due");
}
