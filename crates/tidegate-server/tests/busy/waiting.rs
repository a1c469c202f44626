//! Requests that wait in the queue of a model.

use crate::support::{Answer, Client, TestGateway, eventually};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tidegate::routing::QueueLoad;
use tokio::task::JoinHandle;

/// Settings with one slot at each upstream, and a queue of this size whose requests wait for longer than any test
/// takes.
pub fn one_slot(queue_size: usize) -> String {
    format!(
        "[routing]\nlimit = 1\n[queue]\nsize = {queue_size}\noverflow_size = 0\n\
         wait_max_ms = 3600000\n"
    )
}

/// The queue of the first model.
pub fn queue(gateway: &TestGateway) -> QueueLoad {
    gateway.inner().fleet().monitor().models()[0].queue
}

/// Requests that wait for the first model.
pub fn waiting(gateway: &TestGateway) -> usize {
    let QueueLoad { high, normal, low, .. } = queue(gateway);
    high + normal + low
}

/// Requests that were queued or sent so far.
fn taken(gateway: &TestGateway) -> u64 {
    let sent: u64 = gateway.inner().fleet().stats().iter().map(|upstream| upstream.sent).sum();
    sent + queue(gateway).totals.queued
}

/// Sends a request and returns when it waits, is sent to an upstream, or was refused.
pub async fn send_request(
    gateway: &TestGateway,
    client: Client,
    request: Request<Full<Bytes>>,
) -> JoinHandle<Answer> {
    let before = taken(gateway);
    let sent = tokio::spawn(async move { client.send(request).await });
    eventually("it was taken or refused", || taken(gateway) > before || sent.is_finished()).await;
    sent
}

/// Does the same with a request of this path and priority.
pub async fn send(gateway: &TestGateway, path: &str, priority: &str) -> JoinHandle<Answer> {
    send_with(gateway, path, &[("tidegate-priority", priority)]).await
}

/// Does the same with a request of this path and headers.
pub async fn send_with(
    gateway: &TestGateway,
    path: &str,
    headers: &[(&str, &str)],
) -> JoinHandle<Answer> {
    let client = Client::new(gateway.address);
    let mut request = client.request("GET", path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send_request(gateway, client, request.body(Full::default()).unwrap()).await
}

pub async fn assert_served(sent: impl IntoIterator<Item = JoinHandle<Answer>>) {
    for one in sent {
        let answer = one.await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

/// Asserts that a request was refused for this reason, with advice.
pub async fn assert_refused(sent: JoinHandle<Answer>, reason: &str) -> Answer {
    let answer = sent.await.unwrap();
    let body = answer.json();
    assert_eq!((answer.status.as_u16(), body["reason"].as_str()), (503, Some(reason)), "{body}");
    assert_eq!(body["type"], "service_unavailable");
    let wait_ms = body["retry_after_ms"].as_u64().unwrap();
    assert!(wait_ms > 0);
    assert_eq!(answer.header("retry-after-ms"), wait_ms.to_string());
    assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
    assert!(!answer.headers.contains_key("tidegate-queue-ms"), "it was not served");
    answer
}
