use super::support::{TEXT, TestMock, slow, text};
use http::StatusCode;
use serde_json::Value;
use tidegate_testkit::mock::{MetricsStyle, MockConfig};
use tidegate_testkit::promtool::{Verdict, check_metrics};

/// The page of a mock with two ranks of which the first has one request, with 100 tokens of prompt read.
async fn page(style: MetricsStyle) -> String {
    let mut config = slow();
    config.engine.ranks = 2;
    config.models = vec!["a \"model\"".to_owned()];
    let mock = TestMock::start(MockConfig { metrics: style, ..config });
    let mut request = text(100, 60);
    request["model"] = Value::from("a \"model\"");
    request["stream"] = Value::Bool(true);
    let mut stream = mock.begin("POST", TEXT, &[], &request.to_string()).await;
    // 101 tokens are in the cache when the first one is here.
    let _ = http_body_util::BodyExt::frame(stream.body_mut()).await;
    let page = mock.get("/metrics").await;
    assert_eq!(page.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    promtool_parses(page.text());
    page.text().to_owned()
}

/// Lint of names is for those who chose them; what counts is that it can be read: 3 is lint alone.
fn promtool_parses(text: &str) {
    let Verdict { code, complaints } = check_metrics(text).unwrap();
    assert!(matches!(code, Some(0 | 3)), "{complaints}\n{text}");
    assert!(!complaints.contains("error while linting"), "{complaints}\n{text}");
}

#[track_caller]
fn has(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(page.lines().any(|found| found == *line), "no {line:?} in\n{page}");
    }
}

#[tokio::test]
async fn vllm() {
    let page = page(MetricsStyle::Vllm).await;
    let lines = [
        "# TYPE vllm:num_requests_running gauge",
        r#"vllm:num_requests_running{engine="0",model_name="a \"model\""} 1.0"#,
        r#"vllm:num_requests_running{engine="1",model_name="a \"model\""} 0.0"#,
        r#"vllm:num_requests_waiting{engine="0",model_name="a \"model\""} 0.0"#,
        r#"vllm:num_requests_waiting_by_reason{engine="0",model_name="a \"model\"",reason="capacity"} 0.0"#,
        r#"vllm:kv_cache_usage_perc{engine="0",model_name="a \"model\""} 0.02734375"#,
        "# TYPE vllm:prompt_tokens_total counter",
        r#"vllm:prompt_tokens_total{engine="0",model_name="a \"model\""} 100.0"#,
        r#"vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="1",num_gpu_blocks="256"} 1.0"#,
    ];
    has(&page, &lines);
}

#[tokio::test]
async fn sglang() {
    let page = page(MetricsStyle::Sglang).await;
    let labels = r#"engine_type="unified",model_name="a \"model\"",moe_ep_rank="0",pp_rank="0",tp_rank="0"}"#;
    for (name, value) in [
        ("num_running_reqs", "1.0"),
        ("num_queue_reqs", "0.0"),
        ("token_usage", "0.02734375"),
        ("num_used_tokens", "112.0"),
        ("max_total_num_tokens", "4096.0"),
    ] {
        has(&page, &[&format!("sglang:{name}{{dp_rank=\"0\",{labels} {value}")]);
        assert!(page.contains(&format!("sglang:{name}{{dp_rank=\"1\",")), "{page}");
    }
}

#[tokio::test]
async fn trtllm_sums_its_ranks_and_has_a_second_path() {
    let page = page(MetricsStyle::Trtllm).await;
    let labels = r#"{engine_type="trtllm",model_name="a \"model\""}"#;
    let lines = [
        format!("trtllm_kv_cache_utilization{labels} 0.013671875"),
        format!("trtllm_kv_cache_max_blocks{labels} 512.0"),
        format!("trtllm_num_requests_running{labels} 1.0"),
        format!("trtllm_num_requests_waiting{labels} 0.0"),
    ];
    has(&page, &lines.each_ref().map(String::as_str));
    let mock = TestMock::start(MockConfig { metrics: MetricsStyle::Trtllm, ..slow() });
    assert!(mock.get("/prometheus/metrics").await.text().contains("trtllm_kv_cache_utilization"));
}

#[tokio::test]
async fn tgi_and_llamacpp_say_one_number_without_labels() {
    let tgi = page(MetricsStyle::Tgi).await;
    has(&tgi, &["tgi_queue_size 0", "tgi_batch_current_size 1", "# TYPE tgi_queue_size gauge"]);
    let llamacpp = page(MetricsStyle::Llamacpp).await;
    let lines = ["llamacpp:requests_processing 1", "llamacpp:requests_deferred 0"];
    has(&llamacpp, &lines);
    assert!(!llamacpp.contains("kv_cache"), "it tells nothing of its cache");
}

#[tokio::test]
async fn our_own_is_the_contract_of_agents() {
    let lines = [
        r#"tidegate_upstream_active_decode_blocks{rank="0"} 7"#,
        r#"tidegate_upstream_kv_total_blocks{rank="1"} 256"#,
        r#"tidegate_upstream_active_prefill_tokens{rank="0"} 0"#,
        r#"tidegate_upstream_running_requests{rank="0"} 1"#,
        r#"tidegate_upstream_waiting_requests{rank="1"} 0"#,
    ];
    has(&page(MetricsStyle::Tidegate).await, &lines);
}

#[tokio::test]
async fn none_is_not_found() {
    let mock = TestMock::start(MockConfig { metrics: MetricsStyle::None, ..slow() });
    assert_eq!(mock.get("/metrics").await.status, StatusCode::NOT_FOUND);
}
