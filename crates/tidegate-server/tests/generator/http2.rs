//! HTTP/2 with prior knowledge.

use crate::load::{MS, Plan, at_once, config, every, get, ran, with_others};
use crate::server::{Reply, Server, Speaks};
use std::time::Duration;
use tidegate_server::generator::{BODY_KEPT, Failure, GeneratorConfig, Protocol};

fn http2(server: &Server) -> GeneratorConfig {
    GeneratorConfig { protocol: Protocol::Http2, connections_max: 1, ..config(server.port) }
}

#[test]
fn many_requests_share_a_connection() {
    let _others = with_others();
    let server = Server::new(Speaks::Http2(200), |_, _| Reply::after(300 * MS));
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
    let server = Server::new(Speaks::Http2(200), |_, _| Reply::after(200 * MS));
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
    let ran = ran(http2(&server), get(Some(400 * MS)), Plan::at(every(100 * MS, 10)));
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
    assert!(ran.plan.seen.iter().all(|seen| seen.body.len() == BODY_KEPT));
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
    let server = Server::raw(|stream, _| async move {
        let io = hyper_util::rt::TokioIo::new(stream);
        let service = hyper::service::service_fn(|_| async {
            Ok::<_, std::convert::Infallible>(http::Response::new(String::from("ok")))
        });
        let executor = hyper_util::rt::TokioExecutor::new();
        let connection =
            hyper::server::conn::http2::Builder::new(executor).serve_connection(io, service);
        let _over = tokio::time::timeout(120 * MS, connection).await;
    });
    let ran = ran(http2(&server), get(None), Plan::at(every(50 * MS, 12)));
    // A request that was under way when the connection was cut is lost; the others find a new one.
    assert!(ran.plan.ok() >= 9, "{}", ran.plan.ok());
    assert!(server.record().accepted >= 3);
}
