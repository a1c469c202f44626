use crate::support::{Client, TestGateway, Upstream, eventually};
use tokio::net::TcpStream;

#[tokio::test]
async fn what_is_under_way_is_finished_and_nothing_new_is_taken() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let (address, admin) = (gateway.address, gateway.admin);
    let answer = tokio::spawn(async move { Client::new(address).get("/").await });
    eventually("it is in flight", || gateway.in_flight() == 1).await;
    let _idle = TcpStream::connect(address).await.unwrap();
    let drained = tokio::spawn(gateway.shutdown());
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let ready = Client::new(admin).get("/health/ready").await;
    assert_eq!(
        (ready.status.as_u16(), ready.json()["status"].as_str().unwrap()),
        (503, "draining")
    );
    assert_eq!(Client::new(admin).get("/health/live").await.status, 200);
    upstream.gate.open();
    assert_eq!(answer.await.unwrap().status, 200);
    assert_eq!(drained.await.unwrap().cut, 0);
    assert!(TcpStream::connect(admin).await.is_err(), "nothing is left");
}

#[tokio::test]
async fn what_does_not_end_within_the_grace_time_is_cut_and_counted() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start("[listen]\nshutdown_grace_ms = 100\n", &[upstream.address]);
    let client = Client::new(gateway.address);
    let request = client.request("GET", "/").body(http_body_util::Empty::new()).unwrap();
    let answer = tokio::spawn(async move { client.begin(request).await.map(drop) });
    eventually("it is in flight", || gateway.in_flight() == 1).await;
    assert_eq!(gateway.shutdown().await.cut, 1);
    assert!(answer.await.unwrap().is_err());
}
