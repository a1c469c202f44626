//! What is told of the ingestion: series that Prometheus reads, stats that say the same, and usage.

use crate::http::{Client, eventually};
use crate::support::{Peer, TestIngest, batch, lines_peer};
use tidegate_testkit::promtool::{Verdict, check_metrics};
use tokio::io::AsyncWriteExt;

/// The value of the first series that begins like this.
fn value(page: &str, series: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(series));
    let line = line.unwrap_or_else(|| panic!("no {series} in\n{page}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

async fn page(ingest: &TestIngest) -> String {
    Client::new(ingest.admin).get("/metrics").await.text().to_owned()
}

const STAGES: [&str; 5] = ["accept", "reassemble", "parse", "evaluate", "store"];

#[tokio::test]
async fn every_series_is_there_moves_and_passes_promtool() {
    let ingest = TestIngest::start();
    let before = page(&ingest).await;
    let mut peer = Peer::named(ingest.frames, "a").await;
    for seq in [1, 2, 2] {
        peer.send(&batch("a", (seq, 0), 600)).await;
        peer.acked(seq).await;
    }
    peer.send(b"\x00\x00\x00\x04\x01\x63\x02\x00").await;
    peer.reject().await;
    let mut lines = lines_peer(ingest.lines).await;
    lines.write_all(b"tokens,tenant=b output=1i,note=\"x\"\nnone\n").await.unwrap();
    eventually("all is stored", || ingest.stats().counts.records_stored == 1_201).await;
    // Percentiles are told once they are of a thousand records.
    eventually("p99 is known", || ingest.stats().pipeline.stages[4].p99_ns > 0).await;
    let after = page(&ingest).await;
    let clean = Verdict { code: Some(0), complaints: String::new() };
    assert_eq!(check_metrics(&after).unwrap(), clean);
    for (series, by) in [
        ("tidegate_ingest_bytes_total", None),
        ("tidegate_ingest_frames_total", Some(4.0)),
        ("tidegate_ingest_lines_total", None),
        ("tidegate_ingest_fields_skipped_total", Some(1.0)),
        ("tidegate_ingest_records_total", Some(1_801.0)),
        ("tidegate_ingest_records_stored_total", Some(1_201.0)),
        ("tidegate_ingest_batches_stored_total", Some(3.0)),
        ("tidegate_ingest_batches_repeated_total", Some(1.0)),
        ("tidegate_ingest_commits_total", None),
        ("tidegate_ingest_connections{protocol=\"frames\"}", Some(1.0)),
        ("tidegate_ingest_connections{protocol=\"lines\"}", Some(1.0)),
    ] {
        let moved = value(&after, series) - value(&before, series);
        assert!(by.map_or(moved > 0.0, |by| moved == by), "{series} moved by {moved}");
    }
    let reason = "tidegate_ingest_rejected_total{protocol=\"frames\",reason=\"unknown_kind\"}";
    assert_eq!(value(&after, reason), 1.0);
    assert!(value(&after, "tidegate_tariff_fallbacks_total{") >= 0.0);
    for stage in STAGES {
        for name in [
            "window_size",
            "credits_granted",
            "occupancy_ratio",
            "queued_bytes",
            "service_seconds_count",
            "service_seconds_sum",
            "departed_total",
            "waiting_senders",
            "backpressure_events_total",
            "state",
        ] {
            let series = format!("tidegate_scheduler_{name}{{stage=\"{stage}\"");
            assert!(value(&after, &series) >= 0.0, "{series}");
        }
        let of =
            |name: &str| value(&after, &format!("tidegate_scheduler_{name}{{stage=\"{stage}\""));
        assert!(of("credits_granted") <= of("window_size") && of("window_size") >= 1_024.0);
    }
    assert!(value(&after, "tidegate_scheduler_service_seconds_sum{stage=\"store\"") > 0.0);
    assert_eq!(value(&after, "tidegate_scheduler_memory_budget_bytes"), f64::from(512 << 20));
    assert_eq!(value(&after, "tidegate_ingest_level"), 0.0);
    same_in_stats(&ingest, &after).await;
}

async fn same_in_stats(ingest: &TestIngest, page: &str) {
    let (status, stats) = ingest.get("/v1/stats").await;
    assert_eq!(status, 200);
    let ingest = &stats["ingest"];
    for (key, series) in [
        ("bytes", "tidegate_ingest_bytes_total"),
        ("frames", "tidegate_ingest_frames_total"),
        ("records_stored", "tidegate_ingest_records_stored_total"),
        ("batches_repeated", "tidegate_ingest_batches_repeated_total"),
        ("commits", "tidegate_ingest_commits_total"),
        ("connections_lines", "tidegate_ingest_connections{protocol=\"lines\"}"),
        ("budget_bytes", "tidegate_scheduler_memory_budget_bytes"),
    ] {
        assert_eq!(ingest[key].as_f64(), Some(value(page, series)), "{key}: {ingest}");
    }
    let stages = ingest["stages"].as_array().unwrap();
    let names: Vec<_> = stages.iter().map(|stage| stage["stage"].as_str().unwrap()).collect();
    assert_eq!(names, STAGES);
    assert!(stages.iter().all(|stage| stage["window"].as_u64() >= Some(1_024)), "{ingest}");
}

#[tokio::test]
async fn usage_is_told_by_tenant_and_meter_and_errors_are_named() {
    let ingest = TestIngest::start();
    let mut peer = Peer::named(ingest.frames, "a").await;
    peer.send(&batch("acme", (1, 0), 3)).await;
    peer.acked(1).await;
    peer.send(&batch("other", (2, 0), 2)).await;
    peer.acked(2).await;
    let all = "from_ns=0&until_ns=9000000000000000000";
    let (status, usage) = ingest.get(&format!("/v1/usage?{all}")).await;
    assert_eq!(status, 200, "{usage}");
    let rows = usage["rows"].as_array().unwrap();
    let told: Vec<_> =
        rows.iter().map(|row| (row["tenant"].as_str(), row["records"].as_u64())).collect();
    assert_eq!(told, [(Some("acme"), Some(3)), (Some("other"), Some(2))]);
    let (_, usage) = ingest.get(&format!("/v1/usage?by=both&tenant=acme&{all}")).await;
    assert_eq!(usage["rows"].as_array().unwrap().len(), 1, "{usage}");
    assert_eq!(usage["rows"][0]["quantity"], "3");
    let (_, usage) = ingest.get(&format!("/v1/usage?by=meter&meter=none&{all}")).await;
    assert_eq!(usage["rows"].as_array().unwrap().len(), 0, "{usage}");
    // The last hour, in which nothing was used.
    assert_eq!(ingest.get("/v1/usage").await.1["rows"].as_array().unwrap().len(), 0);
    for (query, parameter) in [
        ("by=hour", "by"),
        ("from_ns=yesterday", "from_ns"),
        ("from_ns=5&until_ns=5", "until_ns"),
        ("tennant=acme", "tennant"),
    ] {
        let (status, body) = ingest.get(&format!("/v1/usage?{query}")).await;
        assert_eq!(status, 400, "{body}");
        assert!(body.to_string().contains(parameter), "{body}");
    }
}
