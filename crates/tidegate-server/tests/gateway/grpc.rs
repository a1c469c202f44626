use crate::support::{Client, Reserved, TestGateway, Upstream, eventually};
use http_body_util::Full;
use std::net::SocketAddr;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

/// A real gRPC server.
async fn health_server() -> SocketAddr {
    let (reporter, service) = tonic_health::server::health_reporter();
    reporter.set_service_status("tide", ServingStatus::Serving).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    tokio::spawn(
        tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming),
    );
    address
}

async fn client(gateway: &TestGateway) -> HealthClient<Channel> {
    let endpoint = Endpoint::try_from(format!("http://{}", gateway.address)).unwrap();
    HealthClient::new(endpoint.connect().await.unwrap())
}

fn check(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

#[tokio::test]
async fn unary_and_streaming_calls_pass_through_with_their_own_errors() {
    let gateway = TestGateway::start("", &[health_server().await]);
    let mut client = client(&gateway).await;
    let serving = ServingStatus::Serving as i32;
    for _ in 0..10 {
        assert_eq!(client.check(check("tide")).await.unwrap().into_inner().status, serving);
    }
    gateway.balances().await;
    let finished = gateway.stats().await["admission"]["finished"][2].clone();
    assert_eq!(finished["success"], 10, "{finished}");
    let unknown = client.check(check("nobody")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound, "the server's own status arrives in its trailers");
    let mut watch = client.watch(check("tide")).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status, serving);
    eventually("the stream holds a permit", || gateway.in_flight() == 1).await;
    drop(watch);
    gateway.balances().await;
}

#[tokio::test]
async fn a_refusal_speaks_grpc() {
    let upstream = Upstream::closed().await;
    let config =
        "[admission]\nglobal_limit = 10\nlow_limit = 2\nnormal_limit = 1\nhigh_limit = 5\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let held = {
        let client = Client::new(gateway.address);
        tokio::spawn(async move { client.get("/").await })
    };
    eventually("the place is taken", || gateway.in_flight() == 1).await;

    let status = client(&gateway).await.check(check("tide")).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("at its limit"), "{}", status.message());
    let pushback = status.metadata().get("grpc-retry-pushback-ms").unwrap().to_str().unwrap();
    assert!(pushback.parse::<u64>().unwrap() > 0);

    // Trailers-only: everything is in the first and last block of headers.
    let raw = Client::h2(gateway.address);
    let request = raw
        .request("POST", "/grpc.health.v1.Health/Check")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::default())
        .unwrap();
    let answer = raw.send(request).await;
    assert_eq!((answer.status.as_u16(), answer.header("grpc-status")), (200, "8"));
    assert!(answer.body.is_empty() && answer.trailers.is_none());

    upstream.gate.open();
    held.await.unwrap();
}

#[tokio::test]
async fn a_dead_upstream_is_unavailable() {
    let dead = Reserved::new();
    let gateway = TestGateway::start("", &[dead.address]);
    let status = client(&gateway).await.check(check("tide")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    gateway.balances().await;
}

#[tokio::test]
async fn grpc_web_is_ordinary_http() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::new(gateway.address);
    let request = client
        .request("POST", "/x")
        .header("content-type", "application/grpc-web+proto")
        .body(Full::default())
        .unwrap();
    assert_eq!(client.send(request).await.status, 200);
    assert_eq!(upstream.last().version, http::Version::HTTP_11);
}
