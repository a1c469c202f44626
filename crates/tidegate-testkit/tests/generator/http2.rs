//! HTTP/2 with prior knowledge.

use crate::load::{MS, OneByOne, Plan, at_once, config, every, get, ran, scheduled, with_others};
use crate::server::{Reply, Server, Speaks};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegate_testkit::generator::{
    BODY_BYTES_MAX, Failure, GeneratorConfig, Protocol, ScheduledRequest, run,
};
use tokio::sync::Notify;

fn http2(server: &Server) -> GeneratorConfig {
    GeneratorConfig { protocol: Protocol::Http2, connections_max: 1, ..config(server.port) }
}

#[test]
fn many_requests_share_a_connection() {
    let _others = with_others();
    let server = Server::new(Speaks::Http2(200), |_, _| Reply::after(2_000 * MS));
    let ran = ran(http2(&server), get(None), Plan::at(at_once(50).chain(every(10 * MS, 50))));
    assert_eq!(ran.plan.ok(), 100);
    assert_eq!(server.record().accepted, 1);
    assert!(server.record().peak >= 50);
    assert_eq!(ran.schedule.no_connection, 0);
}

#[test]
fn streams_are_limited_by_either_side() {
    let _others = with_others();
    for (ours, theirs) in [(10, 200), (200, 10)] {
        let server = Server::new(Speaks::Http2(theirs), |_, _| Reply::after(50 * MS));
        let config = GeneratorConfig { streams_max: ours, ..http2(&server) };
        let ran = ran(config, get(None), Plan::at(at_once(40)));
        assert_eq!(ran.plan.ok(), 40);
        assert_eq!(server.record().peak, 10, "ours {ours}, theirs {theirs}");
        // Four rounds of 50 ms: what waits for a stream is late, not hidden in the connection.
        assert!(ran.schedule.error_max_ms >= 150.0, "{} ms", ran.schedule.error_max_ms);
    }
}

#[test]
fn a_further_connection_is_opened_when_the_first_is_full() {
    let _others = with_others();
    let server = Server::new(Speaks::Http2(200), |_, _| Reply::after(2_000 * MS));
    let config = GeneratorConfig { streams_max: 10, connections_max: 4, ..http2(&server) };
    let ran = ran(config, get(None), Plan::at(at_once(35)));
    assert_eq!((ran.plan.ok(), server.record().accepted), (35, 4));
    assert_eq!((server.record().peak, ran.schedule.no_connection), (35, 0));
}

#[test]
fn a_deadline_ends_one_stream_only() {
    let _others = with_others();
    let server = Server::new(Speaks::Http2(200), |id, _| match id {
        0 => Reply::after(60_000 * MS),
        _ => Reply::after(MS),
    });
    // Only the first is meant to miss its deadline, on however slow a machine.
    let templates = [get(Some(400 * MS)), get(None)].concat();
    let mut plan = Plan::at([]);
    plan.add((0..10).map(|id| ScheduledRequest {
        template: id.min(1) as u16,
        ..scheduled(100 * MS * id as u32, id)
    }));
    let ran = ran(http2(&server), templates, plan);
    assert_eq!((ran.plan.failures(Failure::Deadline), ran.plan.ok()), (1, 9));
    assert_eq!(server.record().accepted, 1);
}

#[test]
fn a_body_is_read_to_its_end_here_too() {
    let _others = with_others();
    let server = Server::new(Speaks::Http2(200), |_, _| Reply {
        bytes: 4 * 1024 * 1024,
        ..Reply::after(MS)
    });
    let ran = ran(http2(&server), get(None), Plan::at(at_once(3)));
    assert_eq!(ran.plan.ok(), 3);
    assert!(ran.plan.seen.iter().all(|seen| seen.body.len() == BODY_BYTES_MAX));
}

#[test]
fn a_server_of_another_protocol_is_no_connection() {
    let _others = with_others();
    let server = Server::new(Speaks::Http1, |_, _| Reply::after(Duration::ZERO));
    let ran = ran(http2(&server), get(None), Plan::at(at_once(3)));
    assert_eq!(ran.plan.failures(Failure::Connect), 3);
    assert_eq!((ran.schedule.not_connected, ran.schedule.unsent), (3, 0));
}

#[test]
fn a_server_that_closes_is_connected_to_again() {
    let _others = with_others();
    // It lets go of each connection with the fourth request.
    let server = Server::raw(|stream, _| async move {
        let io = hyper_util::rt::TokioIo::new(stream);
        let (asked, enough) = (AtomicUsize::new(0), Arc::new(Notify::new()));
        let full = Arc::clone(&enough);
        let service = hyper::service::service_fn(move |_| {
            if asked.fetch_add(1, Ordering::Relaxed) == 3 {
                enough.notify_one();
            }
            async { Ok::<_, std::convert::Infallible>(http::Response::new(String::from("ok"))) }
        });
        let executor = hyper_util::rt::TokioExecutor::new();
        let mut connection =
            pin!(hyper::server::conn::http2::Builder::new(executor).serve_connection(io, service));
        tokio::select! {
            _over = connection.as_mut() => return,
            () = full.notified() => connection.as_mut().graceful_shutdown(),
        }
        let _over = connection.await;
    });
    let driver = OneByOne::new(12, MS, |_| {});
    let (driver, _) = run(http2(&server), get(None), driver).unwrap();
    assert!(driver.seen.iter().all(|seen| seen.result.is_ok()), "{:?}", driver.seen);
    assert_eq!(driver.seen.len(), 12);
    // One may still take the fifth, which was on its way.
    assert!((2..=3).contains(&server.record().accepted), "{}", server.record().accepted);
}
