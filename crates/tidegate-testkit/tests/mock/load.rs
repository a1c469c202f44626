use super::support::{Answer, CHAT, TEXT, TestMock, chat, fast, slow, streamed, text};
use http_body_util::BodyExt;
use serde_json::Value;
use std::sync::Arc;
use tidegate_testkit::mock::MockConfig;

/// A stream whose prompt is read and whose second token is minutes away.
async fn begun(mock: &TestMock, headers: &[(&str, &str)]) -> http::Response<hyper::body::Incoming> {
    let mut request = text(100, 60);
    request["stream"] = Value::Bool(true);
    mock.begin("POST", TEXT, headers, &request.to_string()).await
}

#[tokio::test]
async fn blocks_are_taken_for_the_prompt_and_freed_when_the_client_leaves() {
    for h2 in [false, true] {
        let mock = TestMock::start_observable(slow());
        let mock = if h2 { mock.over_h2() } else { mock };
        let mut stream = begun(&mock, &[]).await;
        // The first token comes with the end of the prompt: 101 tokens are seven blocks of 16.
        stream.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(mock.gauge("active_decode_blocks", 0).await, 7.0);
        assert_eq!(mock.gauge("running_requests", 0).await, 1.0);
        drop(stream);
        mock.until("active_decode_blocks", 0, 0.0).await;
        assert_eq!(mock.gauge("running_requests", 0).await, 0.0);
    }
}

#[tokio::test]
async fn one_who_waits_for_the_whole_answer_and_leaves_frees_its_blocks_too() {
    let mock = Arc::new(TestMock::start_observable(slow()));
    let asking = Arc::clone(&mock);
    let task = tokio::spawn(async move { asking.post(TEXT, &text(100, 60)).await.status });
    mock.until("running_requests", 0, 1.0).await;
    task.abort();
    mock.until("active_decode_blocks", 0, 0.0).await;
    assert_eq!(mock.gauge("running_requests", 0).await, 0.0);
}

#[tokio::test]
async fn one_who_waits_in_the_queue_and_leaves_gives_up_the_place() {
    let mut config = slow();
    (config.engine.max_running, config.engine.max_waiting) = (1, 1);
    let mock = TestMock::start_observable(config);
    let running = begun(&mock, &[]).await;
    let waiting = begun(&mock, &[]).await;
    mock.until("waiting_requests", 0, 1.0).await;
    drop(waiting);
    mock.until("waiting_requests", 0, 0.0).await;
    let next = begun(&mock, &[]).await;
    assert_eq!(mock.gauge("waiting_requests", 0).await, 1.0);
    drop(running);
    mock.until("waiting_requests", 0, 0.0).await;
    assert_eq!(mock.gauge("running_requests", 0).await, 1.0);
    drop(next);
}

#[tokio::test]
async fn after_every_answer_nothing_is_held() {
    let mock = TestMock::start_observable(fast());
    for _ in 0..6 {
        assert_eq!(mock.post(TEXT, &text(50, 30)).await.status, 200);
        assert_eq!(mock.post(CHAT, &streamed(30)).await.events().len(), 1 + 30 + 1);
    }
    for gauge in ["active_decode_blocks", "active_prefill_tokens", "running_requests"] {
        assert_eq!(mock.gauge(gauge, 0).await, 0.0, "{gauge}");
    }
    assert_eq!(mock.gauge("kv_total_blocks", 0).await, 256.0);
}

#[tokio::test]
async fn requests_go_to_the_least_loaded_rank_or_to_the_one_that_is_named() {
    let mut config = slow();
    config.engine.ranks = 3;
    let mock = TestMock::start_observable(config);
    let running = async || {
        let mut counts = Vec::new();
        for rank in 0..3 {
            counts.push(mock.gauge("running_requests", rank).await);
        }
        counts
    };
    let _pinned = begun(&mock, &[("x-data-parallel-rank", "1")]).await;
    assert_eq!(running().await, [0.0, 1.0, 0.0]);
    let _free = (begun(&mock, &[]).await, begun(&mock, &[]).await);
    assert_eq!(running().await, [1.0, 1.0, 1.0]);
    let _again = begun(&mock, &[("X-Data-Parallel-Rank", "1")]).await;
    assert_eq!(running().await, [1.0, 2.0, 1.0]);
}

#[tokio::test]
async fn orca_headers_are_there_in_both_forms_when_they_are_asked_for() {
    let mock = TestMock::start(MockConfig { name: "b".to_owned(), ..slow() });
    let _running = begun(&mock, &[]).await;
    let told = async |format: &str, body: Value| {
        let headers = [("endpoint-load-metrics-format", format)];
        let response = mock.begin("POST", TEXT, &headers, &body.to_string()).await;
        let header = response.headers().get("endpoint-load-metrics")?;
        Some(header.to_str().unwrap().to_owned())
    };
    let mut stream = text(1, 9);
    stream["stream"] = Value::Bool(true);
    let text_form = told("TEXT", stream.clone()).await.unwrap();
    assert!(text_form.starts_with("TEXT named_metrics.kv_cache_usage_perc=0.0"), "{text_form}");
    assert!(text_form.contains(", named_metrics.num_requests_waiting=0.0"), "{text_form}");
    let json_form = told("json", stream.clone()).await.unwrap();
    let json: Value = serde_json::from_str(json_form.strip_prefix("JSON ").unwrap()).unwrap();
    let named = &json["named_metrics"];
    assert!(named["num_requests_running"].as_f64().unwrap() >= 2.0, "{json}");
    assert!(named["active_prefill_tokens"].is_f64(), "{json}");
    assert_eq!(told("BIN", stream).await, None);

    let mock = TestMock::start(fast());
    let headers = [("endpoint-load-metrics-format", "text")];
    let whole: Answer = mock.send("POST", CHAT, &headers, &chat(2).to_string()).await;
    assert!(whole.header("endpoint-load-metrics").contains("num_requests_running=0.0"));
    assert!(!mock.post(CHAT, &chat(2)).await.headers.contains_key("endpoint-load-metrics"));
}
