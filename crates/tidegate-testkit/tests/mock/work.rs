//! `/work`: places, blocks and a queue, by real requests.

use super::support::{Answer, CHAT, TEXT, TestMock, fast, slow, streamed, text};
use http::{Request, StatusCode};
use http_body_util::Full;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_testkit::mock::MockConfig;
use tokio::task::{JoinHandle, JoinSet};

/// Work that only ends because its client leaves.
const FOR_EVER: &str = "/work?ms=600000";

fn sized(places: usize, waiting: usize) -> MockConfig {
    let mut config = fast();
    (config.engine.max_running, config.engine.max_waiting) = (places, waiting);
    config
}

fn begun(mock: &Arc<TestMock>, path: &str) -> JoinHandle<StatusCode> {
    let (mock, path) = (Arc::clone(mock), path.to_owned());
    tokio::spawn(async move { mock.get(&path).await.status })
}

/// Running, waiting, blocks.
async fn load(mock: &TestMock) -> (f64, f64, f64) {
    let running = mock.gauge("running_requests", 0).await;
    let waiting = mock.gauge("waiting_requests", 0).await;
    (running, waiting, mock.gauge("active_decode_blocks", 0).await)
}

#[tokio::test]
async fn it_takes_its_time_and_says_little() {
    let mock = TestMock::start(fast());
    for (method, body) in [("GET", String::new()), ("POST", "x".repeat(100_000))] {
        let start = Instant::now();
        let answer = mock.send(method, "/work?ms=50.5&blocks=3", &[], &body).await;
        assert!(start.elapsed() >= Duration::from_micros(50_500), "{:?}", start.elapsed());
        assert_eq!((answer.status, answer.text()), (StatusCode::OK, "{\"done\":true}\n"));
        assert_eq!(answer.header("x-tidegate-mock"), "mock-1");
    }
}

#[tokio::test]
async fn places_blocks_and_the_queue_are_seen_and_freed_when_clients_leave() {
    for h2 in [false, true] {
        let mock = TestMock::start_observable(sized(2, 2));
        let mock = Arc::new(if h2 { mock.over_h2() } else { mock });
        let runs = begun(&mock, &format!("{FOR_EVER}&blocks=100"));
        mock.until("active_decode_blocks", 0, 100.0).await;
        // 256 blocks in all: there is a place, and there are too few blocks.
        let waits = begun(&mock, &format!("{FOR_EVER}&blocks=157"));
        mock.until("waiting_requests", 0, 1.0).await;
        let behind = begun(&mock, &format!("{FOR_EVER}&blocks=1"));
        mock.until("waiting_requests", 0, 2.0).await;
        assert_eq!(load(&mock).await, (1.0, 2.0, 100.0));
        waits.abort();
        mock.until("running_requests", 0, 2.0).await;
        assert_eq!(load(&mock).await, (2.0, 0.0, 101.0));
        runs.abort();
        mock.until("active_decode_blocks", 0, 1.0).await;
        behind.abort();
        mock.until("running_requests", 0, 0.0).await;
        assert_eq!(load(&mock).await, (0.0, 0.0, 0.0));
    }
}

#[tokio::test]
async fn beyond_the_queue_it_is_503_in_openai_s_form() {
    let mock = Arc::new(TestMock::start_observable(sized(1, 1)));
    let running = begun(&mock, "/work?ms=90000");
    mock.until("running_requests", 0, 1.0).await;
    let waiting = begun(&mock, FOR_EVER);
    mock.until("waiting_requests", 0, 1.0).await;
    let refused = mock.send("POST", "/work?ms=1", &[], "body").await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.json()["error"]["code"], "overloaded");
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!((30..=90).contains(&seconds), "when the one that runs ends: {seconds}");
    running.abort();
    waiting.abort();
}

#[tokio::test]
async fn it_and_completions_do_not_take_each_other_s_places() {
    let mut config = slow();
    (config.engine.max_running, config.engine.max_waiting) = (1, 0);
    let mock = Arc::new(TestMock::start_observable(config));
    let _stream = mock.begin("POST", CHAT, &[], &streamed(5).to_string()).await;
    let work = begun(&mock, &format!("{FOR_EVER}&blocks=20"));
    mock.until("running_requests", 0, 2.0).await;
    // The prompt of the completion has one block.
    assert_eq!(load(&mock).await, (2.0, 0.0, 21.0));
    assert_eq!(mock.get("/work?ms=1").await.status, StatusCode::SERVICE_UNAVAILABLE);
    work.abort();
}

#[tokio::test]
async fn the_load_is_told_after_orca_too() {
    let mock = Arc::new(TestMock::start_observable(fast()));
    let runs = begun(&mock, &format!("{FOR_EVER}&blocks=64"));
    mock.until("running_requests", 0, 1.0).await;
    let asked = [("endpoint-load-metrics-format", "TEXT")];
    let answer = mock.send("GET", "/work?ms=0", &asked, "").await;
    let told = answer.header("endpoint-load-metrics");
    assert!(told.contains("kv_cache_usage_perc=0.25"), "{told}");
    assert!(told.contains("num_requests_running=1.0"), "{told}");
    assert!(!mock.get("/work?ms=0").await.headers.contains_key("endpoint-load-metrics"));
    runs.abort();
}

#[tokio::test]
async fn what_is_asked_wrongly_is_400_with_the_field() {
    let mock = TestMock::start(fast());
    for (query, param) in
        [("ms=soon", "ms"), ("ms=-1", "ms"), ("blocks=x", "blocks"), ("blocks=257", "blocks")]
    {
        let answer = mock.get(&format!("/work?{query}")).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{query}");
        assert_eq!(answer.json()["error"]["param"], param, "{query}");
    }
    let wrong = mock.send("PUT", "/work", &[], "").await;
    assert_eq!(wrong.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(wrong.header("allow"), "GET, POST");
}

#[tokio::test]
async fn a_body_that_does_not_end_is_413() {
    let mock = TestMock::start(fast());
    let body = super::support::Unmeasured(Full::from(vec![0; (64 << 20) + 1]));
    let request = Request::builder().method("POST").uri("/work?ms=1").header("host", "mock");
    let answer = Answer::read(mock.begin_request(request.body(body).unwrap()).await).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
}

/// Capacity is places / time however coarse the timers are: what waits begins when its place became free. A
/// machine that is busy with other things can only make it longer, so only the lower bound is exact.
#[tokio::test]
async fn many_pieces_go_through_few_places_at_the_rate_that_they_give() {
    let mock = Arc::new(TestMock::start(sized(4, 1000)));
    let start = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..400 {
        let mock = Arc::clone(&mock);
        all.spawn(async move { mock.get("/work?ms=2.5").await.status });
    }
    assert!(all.join_all().await.iter().all(|status| *status == StatusCode::OK));
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(250), "{took:?}");
}

#[tokio::test]
async fn other_paths_and_completions_are_as_they_were() {
    let mock = TestMock::start(sized(1, 0));
    assert_eq!(mock.get("/anything?ms=1").await.json()["path"], "/anything");
    assert_eq!(mock.post(TEXT, &text(5, 3)).await.json()["usage"]["total_tokens"], Value::from(8));
}
