use crate::support::{Client, TestGateway, Upstream};
use http_body_util::Full;

const CONFIG: &str = r#"
[claims]
anonymous = "refuse"
[[client]]
name = "batch"
token = "batch-0123456789abcdef"
max_priority = "low"
[[client]]
name = "front"
token = "front-0123456789abcdef"
max_priority = "high"
[[route]]
path_prefix = "/bulk"
priority = "low"
"#;

async fn acquired(gateway: &TestGateway) -> [u64; 3] {
    let stats = gateway.inner().admission().tracker().stats();
    [stats.high_acquired, stats.normal_acquired, stats.low_acquired]
}

async fn send(gateway: &TestGateway, path: &str, token: Option<&str>, priority: &str) -> u16 {
    let client = Client::new(gateway.address);
    let mut request = client.request("GET", path).header("tidegate-priority", priority);
    if let Some(token) = token {
        request = request.header("tidegate-token", token);
    }
    client.send(request.body(Full::default()).unwrap()).await.status.as_u16()
}

#[tokio::test]
async fn clients_get_at_most_the_priority_that_their_token_allows() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start(CONFIG, &[upstream.address]);
    assert_eq!(send(&gateway, "/", Some("batch-0123456789abcdef"), "high").await, 200);
    assert_eq!(acquired(&gateway).await, [0, 0, 1]);
    assert_eq!(send(&gateway, "/", Some("front-0123456789abcdef"), "critical").await, 200);
    assert_eq!(acquired(&gateway).await, [1, 0, 1], "critical is capped at high");
    assert_eq!(send(&gateway, "/bulk/1", Some("front-0123456789abcdef"), "high").await, 200);
    assert_eq!(acquired(&gateway).await, [1, 0, 2], "the route decides before the claim");
    assert_eq!(send(&gateway, "/", None, "high").await, 401);
    assert_eq!(send(&gateway, "/", Some("guess-0123456789abcdef"), "high").await, 401);
    assert_eq!(acquired(&gateway).await, [1, 0, 2], "who is not known takes no place");
}

#[tokio::test]
async fn health_needs_no_token() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start(CONFIG, &[upstream.address]);
    assert_eq!(Client::new(gateway.address).get("/health/live").await.status, 200);
}
