//! Connections that fill the data port and say nothing, half a head, or hold a request.

use crate::measure::{alone, descriptors, slowest_check};
use crate::support::{TestGateway, Upstream, eventually, raw};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

const SETTINGS: &str = "[listen]\nthreads = 1\nconnections_max = 200\nconnections_reserve = 8\n";
const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
const HALF: &[u8] = b"GET /health/live HTTP/1.1\r\nhost: x\r\nx-slow";

async fn connect(gateway: &TestGateway, connections: usize, start: &[u8]) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for _ in 0..connections {
        let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
        // One that had to make room is reset.
        let _ = tcp.write_all(start).await;
        open.push(tcp);
    }
    open
}

#[tokio::test]
async fn a_full_data_port_answers_health_and_refuses_others() {
    let _alone = alone().await;
    let upstream = Upstream::closed().await;
    for start in [b"".as_slice(), HALF, GET] {
        let gateway = TestGateway::start(SETTINGS, &[upstream.address]);
        let (calm, before) = (slowest_check(&gateway).await, descriptors());
        let attackers = connect(&gateway, 200, start).await;
        eventually("the port is full", || gateway.inner().metrics().connections == 200).await;
        let attacked = slowest_check(&gateway).await;
        let bound = calm * 10 + Duration::from_millis(500);
        assert!(attacked < bound, "{calm:?} became {attacked:?} beside {:?}", start.utf8_chunks());
        let answer = raw(gateway.address, GET).await;
        let refused = answer.starts_with("HTTP/1.1 503") && answer.contains("connection_limit");
        assert!(refused, "{answer}");
        drop(attackers);
        eventually("none is left", || gateway.inner().metrics().connections == 0).await;
        gateway.balances().await;
        eventually("their descriptors are closed", || descriptors() < before + 10).await;
    }
}

#[tokio::test]
async fn a_full_reserve_makes_room_for_health() {
    let _alone = alone().await;
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start(SETTINGS, &[upstream.address]);
    let _ordinary = connect(&gateway, 200, b"").await;
    eventually("the port is full", || gateway.inner().metrics().connections == 200).await;
    for start in [b"".as_slice(), HALF] {
        let _reserve = connect(&gateway, 40, start).await;
        slowest_check(&gateway).await;
        let open = || gateway.inner().metrics().connections;
        eventually("those that made room are closed", || open() <= 200 + 8 + 2).await;
    }
}

#[tokio::test]
async fn a_silent_connection_of_the_reserve_is_closed_within_a_second_and_an_ordinary_one_is_not() {
    let _alone = alone().await;
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start(SETTINGS, &[upstream.address]);
    let mut ordinary = connect(&gateway, 200, b"").await;
    eventually("the port is full", || gateway.inner().metrics().connections == 200).await;
    let mut silent = connect(&gateway, 1, HALF).await.remove(0);
    let closed = timeout(Duration::from_secs(10), silent.read(&mut [0; 1])).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
    let mut first = ordinary.remove(0);
    first.write_all(GET).await.unwrap();
    assert_eq!(first.read(&mut [0; 1]).await.unwrap(), 1, "it is still served");
}

#[tokio::test]
async fn a_connection_of_the_reserve_is_an_ordinary_one_once_there_is_room() {
    let _alone = alone().await;
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(SETTINGS, &[upstream.address]);
    let mut ordinary = connect(&gateway, 200, b"").await;
    eventually("the port is full", || gateway.inner().metrics().connections == 200).await;
    let mut reserved = connect(&gateway, 1, b"").await.remove(0);
    eventually("it is in the reserve", || gateway.inner().metrics().connections == 201).await;
    drop(ordinary.pop());
    eventually("there is room", || gateway.inner().metrics().connections == 200).await;
    reserved.write_all(GET).await.unwrap();
    eventually("it is sent on", || !upstream.seen().is_empty()).await;
    // Longer than a connection of the reserve may be without a request.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    upstream.gate.open();
    let mut answer = [0; 12];
    reserved.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}
