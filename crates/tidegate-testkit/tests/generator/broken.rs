//! Servers that do not do as they should.

use crate::load::{MS, OneByOne, Plan, config, every, get, ran, with_others};
use crate::server::{ClosedPort, Reply, Server, Speaks};
use std::time::Duration;
use tidegate_testkit::generator::{BODY_BYTES_MAX, Failure, run};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Much more than any of it takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Reads one request without a body; false when there is none.
async fn request(stream: &mut TcpStream) -> bool {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => read.push(byte),
            Err(_) => return false,
        }
    }
    true
}

/// A server that answers each request with these bytes, and then closes the connection if told to.
fn saying(answer: &'static [u8], then_close: bool) -> Server {
    Server::raw(move |mut stream, _| async move {
        while request(&mut stream).await {
            if stream.write_all(answer).await.is_err() || then_close {
                return;
            }
        }
    })
}

/// Ten requests to it, and how many of them were fine and failed so.
fn ten(port: u16, failure: Failure) -> (usize, usize) {
    let ran = ran(config(port), get(None), Plan::at(every(5 * MS, 10)));
    assert!(ran.took < PATIENCE, "{:?}", ran.took);
    (ran.plan.ok(), ran.plan.failures(failure))
}

#[test]
fn nobody_listens() {
    let _others = with_others();
    let closed = ClosedPort::new();
    let ran = ran(config(closed.port), get(None), Plan::at(every(5 * MS, 10)));
    assert_eq!(ran.plan.failures(Failure::Connect), 10);
    // That is the target's doing: the generator did all that it could.
    assert_eq!((ran.schedule.not_connected, ran.schedule.unsent), (10, 0));
}

#[test]
fn connections_are_closed_as_soon_as_they_are_made() {
    let _others = with_others();
    let server = Server::raw(|stream, _| async move { drop(stream) });
    let ran = ran(config(server.port), get(None), Plan::at(every(5 * MS, 10)));
    // Whether something was written before the end was seen is a race that the server decides.
    let failed = [Failure::Connect, Failure::Broken].map(|failure| ran.plan.failures(failure));
    assert_eq!(failed.iter().sum::<usize>(), 10);
    assert!(server.record().accepted <= 10, "each is tried once");
}

#[test]
fn nonsense_is_no_answer() {
    let _others = with_others();
    let server = saying(b"it was a dark and stormy night\r\n\r\n", false);
    assert_eq!(ten(server.port, Failure::Broken), (0, 10));
}

#[test]
fn an_answer_is_cut_in_its_head() {
    let _others = with_others();
    let server = saying(b"HTTP/1.1 200 OK\r\ncontent-le", true);
    assert_eq!(ten(server.port, Failure::Broken), (0, 10));
}

#[test]
fn an_answer_is_cut_in_its_body() {
    let _others = with_others();
    let server = saying(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this", true);
    assert_eq!(ten(server.port, Failure::Broken), (0, 10));
    let server =
        saying(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", true);
    assert_eq!(ten(server.port, Failure::Broken), (0, 10));
}

#[test]
fn a_connection_is_closed_without_an_answer() {
    let _others = with_others();
    let server = saying(b"", true);
    assert_eq!(ten(server.port, Failure::Broken), (0, 10));
}

#[test]
fn whole_answers_in_all_forms_are_understood() {
    let _others = with_others();
    let chunked =
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
    assert_eq!(ten(saying(chunked, false).port, Failure::Broken), (10, 0));
    let closing = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
    let server = saying(closing, true);
    assert_eq!(ten(server.port, Failure::Broken), (10, 0));
    assert_eq!(server.record().accepted, 10);
    let until_the_end = b"HTTP/1.0 200 OK\r\n\r\nall there is";
    assert_eq!(ten(saying(until_the_end, true).port, Failure::Broken), (10, 0));
    let early_hint =
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(ten(saying(early_hint, false).port, Failure::Broken), (10, 0));
}

#[test]
fn idle_connections_that_were_closed_are_not_used() {
    let _others = with_others();
    let server = Server::raw(|mut stream, _| async move {
        if request(&mut stream).await {
            let _cut = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            tokio::time::sleep(20 * MS).await;
        }
    });
    // The next is due some time after the connection of the last was closed.
    let closed = |ended: u64| {
        while (server.record().closed as u64) < ended {
            std::thread::sleep(MS);
        }
    };
    let driver = OneByOne::new(6, 200 * MS, closed);
    let (driver, _) = run(config(server.port), get(None), driver).unwrap();
    assert!(driver.seen.iter().all(|seen| seen.result.is_ok()), "{:?}", driver.seen);
    assert_eq!((driver.seen.len(), server.record().accepted), (6, 6));
}

#[test]
fn a_body_is_read_to_its_end_and_its_beginning_kept() {
    let _others = with_others();
    const BYTES: usize = 8 * 1024 * 1024;
    let server = Server::new(Speaks::Http1, |_, _| Reply { bytes: BYTES, ..Reply::after(MS) });
    let ran = ran(config(server.port), get(None), Plan::at(every(50 * MS, 3)));
    assert_eq!(ran.plan.ok(), 3);
    assert!(ran.plan.seen.iter().all(|seen| seen.body == vec![b'x'; BODY_BYTES_MAX]));
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let _others = with_others();
    // Every second connection is closed before it was used.
    let server = Server::raw(|mut stream, record| async move {
        if crate::server::lock(&record).accepted.is_multiple_of(2) {
            return;
        }
        if request(&mut stream).await {
            let _cut = stream
                .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                .await;
        }
    });
    let mut config = config(server.port);
    config.connections_max = 1;
    let ran = ran(config, get(None), Plan::at(every(10 * MS, 20)));
    assert_eq!(ran.plan.ok(), 10);
}
