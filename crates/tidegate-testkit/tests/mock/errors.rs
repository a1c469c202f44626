use super::support::{Answer, CHAT, TEXT, TestMock, Unmeasured, chat, fast, slow, streamed, text};
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::json;

#[track_caller]
fn is_error(answer: &Answer, status: StatusCode, param: Option<&str>, code: Option<&str>) {
    assert_eq!(answer.status, status, "{answer:?}");
    let json = answer.json();
    let error = &json["error"];
    assert_eq!((&error["param"], &error["code"]), (&json!(param), &json!(code)), "{json}");
    assert!(!error["message"].as_str().unwrap().is_empty(), "{json}");
    let kind = if status.is_server_error() { "server_error" } else { "invalid_request_error" };
    assert_eq!(error["type"], kind);
    assert_eq!(answer.header("x-tidegate-mock"), "mock-1");
}

#[tokio::test]
async fn what_can_t_be_read_is_400_with_the_field() {
    let mock = TestMock::start(fast());
    let bad = StatusCode::BAD_REQUEST;
    is_error(&mock.send("POST", CHAT, &[], "{").await, bad, None, None);
    let mut request = chat(1);
    request["stream"] = json!("yes");
    is_error(&mock.post(CHAT, &request).await, bad, Some("stream"), None);
    is_error(&mock.post(TEXT, &chat(1)).await, bad, Some("prompt"), None);
}

#[tokio::test]
async fn an_unknown_model_is_404() {
    let mock = TestMock::start(fast());
    let mut request = chat(1);
    request["model"] = json!("gpt-0");
    let answer = mock.post(CHAT, &request).await;
    is_error(&answer, StatusCode::NOT_FOUND, Some("model"), Some("model_not_found"));
}

#[tokio::test]
async fn more_than_the_cache_holds_is_400_and_exactly_so_much_is_not() {
    let mock = TestMock::start(fast());
    let too_long = mock.post(TEXT, &text(4000, 97)).await;
    is_error(&too_long, StatusCode::BAD_REQUEST, None, Some("context_length_exceeded"));
    assert_eq!(mock.post(TEXT, &text(4000, 96)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_huge_body_is_413_with_and_without_its_length() {
    let mock = TestMock::start(fast());
    let body = "a".repeat((4 << 20) + 1);
    let answer = mock.send("POST", CHAT, &[], &body).await;
    is_error(&answer, StatusCode::PAYLOAD_TOO_LARGE, None, None);
    let body = Unmeasured(Full::from(body));
    let request = Request::builder().method("POST").uri(CHAT).header("host", "mock").body(body);
    let answer = Answer::read(mock.begin_request(request.unwrap()).await).await;
    is_error(&answer, StatusCode::PAYLOAD_TOO_LARGE, None, None);
}

#[tokio::test]
async fn a_wrong_method_is_405_and_says_the_right_one() {
    let mock = TestMock::start(fast());
    for (method, path, allow) in [
        ("GET", CHAT, "POST"),
        ("DELETE", TEXT, "POST"),
        ("POST", "/v1/models", "GET, HEAD"),
        ("PUT", "/metrics", "GET, HEAD"),
        ("PUT", "/mock/fault", "GET, POST, DELETE"),
    ] {
        let answer = mock.send(method, path, &[], "").await;
        is_error(&answer, StatusCode::METHOD_NOT_ALLOWED, None, Some("method_not_allowed"));
        assert_eq!(answer.header("allow"), allow, "{method} {path}");
    }
}

#[tokio::test]
async fn a_rank_that_is_not_there_is_400() {
    let mock = TestMock::start(fast());
    for rank in ["1", "-1", "first"] {
        let headers = [("X-data-parallel-rank", rank)];
        let answer = mock.send("POST", CHAT, &headers, &chat(1).to_string()).await;
        is_error(&answer, StatusCode::BAD_REQUEST, Some("X-data-parallel-rank"), None);
    }
}

#[tokio::test]
async fn when_batch_and_queue_are_full_it_is_503_with_retry_after() {
    let mut config = slow();
    (config.engine.max_running, config.engine.max_waiting) = (1, 1);
    let mock = TestMock::start_observable(config);
    let body = streamed(10).to_string();
    let _running = mock.begin("POST", CHAT, &[], &body).await;
    let _waiting = mock.begin("POST", CHAT, &[], &body).await;
    assert_eq!(mock.gauge("running_requests", 0).await, 1.0);
    assert_eq!(mock.gauge("waiting_requests", 0).await, 1.0);
    let answer = mock.post(CHAT, &chat(10)).await;
    is_error(&answer, StatusCode::SERVICE_UNAVAILABLE, None, Some("overloaded"));
    let seconds: u64 = answer.header("retry-after").parse().unwrap();
    assert!((540..=600).contains(&seconds), "about ten tokens of a minute each: {seconds}");
}
