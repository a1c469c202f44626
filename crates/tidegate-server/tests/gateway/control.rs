use crate::support::{Client, TestGateway, Upstream, eventually, undisturbed};
use http_body_util::Full;
use std::time::{Duration, Instant};
use tidegate_testkit::promtool::{Verdict, check_metrics};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn every_control_endpoint_answers_on_both_ports() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    for address in [gateway.address, gateway.admin] {
        for path in ["/health/live", "/health/ready", "/metrics", "/v1/stats"] {
            assert_eq!(Client::new(address).get(path).await.status, 200, "{path} on {address}");
        }
    }
    assert!(upstream.seen().is_empty(), "none of it is an upstream's business");
}

#[tokio::test]
async fn the_admin_port_proxies_nothing() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let answer = Client::new(gateway.admin).get("/anything").await;
    assert_eq!(answer.status, 404);
    assert!(answer.json()["message"].as_str().unwrap().contains("/v1/stats"));
    assert!(upstream.seen().is_empty());
}

#[tokio::test]
async fn control_endpoints_are_read_only() {
    let gateway = TestGateway::start("", &[Upstream::start().await.address]);
    let client = Client::new(gateway.admin);
    let answer =
        client.send(client.request("POST", "/v1/stats").body(Full::default()).unwrap()).await;
    assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, "GET, HEAD"));
}

#[tokio::test]
async fn the_snapshot_has_every_field_of_the_seed() {
    let gateway = TestGateway::start("", &[Upstream::start().await.address]);
    Client::new(gateway.address).get_as("/", "low").await;
    gateway.balances().await;
    let stats = gateway.stats().await;
    let admission = stats["admission"].as_object().unwrap();
    for priority in ["critical", "high", "normal", "low"] {
        for field in ["in_flight", "acquired", "shed"] {
            assert!(admission.contains_key(&format!("{priority}_{field}")), "{priority}_{field}");
        }
    }
    for field in ["total_in_flight", "global_limit", "high_limit", "normal_limit", "low_limit"] {
        assert!(admission.contains_key(field), "{field}");
    }
    assert_eq!(
        (&stats["admission"]["low_acquired"], &stats["admission"]["critical_shed"]),
        (&1.into(), &0.into())
    );
    assert_eq!((&stats["load_state"], &stats["phase"]), (&"healthy".into(), &"serving".into()));
    assert_eq!(stats["upstreams"][0]["sent"], 1);
}

#[tokio::test]
async fn load_state_and_alerts_follow_the_load_and_let_go() {
    let upstream = Upstream::closed().await;
    let config =
        "[admission]\nglobal_limit = 10\nhigh_limit = 5\nnormal_limit = 3\nlow_limit = 2\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let client = Client::new(gateway.address);
    let mut held = Vec::new();
    let mut states = Vec::new();
    for (priority, count) in [("low", 2), ("normal", 3), ("high", 5)] {
        let before = gateway.in_flight();
        for _ in 0..count {
            held.push(tokio::spawn(async move { client.get_as("/", priority).await }));
        }
        eventually("the places are taken", || gateway.in_flight() == before + count).await;
        states.push(gateway.stats().await["load_state"].as_str().unwrap().to_owned());
    }
    assert_eq!(states, ["pressured", "overloaded", "overloaded"]);
    let alerts = gateway.stats().await["alerts"].clone();
    let names: Vec<_> =
        alerts.as_array().unwrap().iter().map(|alert| alert["alert"].as_str().unwrap()).collect();
    assert_eq!(names, ["high_near_limit", "near_global_limit"]);
    let raised = gateway.inner().control().alerts().clone();
    eventually("the observer has seen it", || raised.raised() == [0, 1, 1]).await;
    upstream.gate.open();
    for task in held {
        task.await.unwrap();
    }
    gateway.balances().await;
    assert_eq!(gateway.stats().await["load_state"], "healthy");
    eventually("the alerts are cleared", || raised.holding() == [false; 3]).await;
}

#[tokio::test]
async fn the_metrics_are_what_prometheus_expects() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    for priority in ["high", "normal", "low"] {
        Client::new(gateway.address).get_as("/", priority).await;
    }
    gateway.balances().await;
    let metrics = Client::new(gateway.admin).get("/metrics").await;
    assert_eq!(metrics.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let text = metrics.text();
    for line in [
        "tidegate_acquired_total{priority=\"high\"} 1",
        "tidegate_in_flight{priority=\"low\"} 0",
        "tidegate_critical_shed_total 0",
        "tidegate_shed_total{priority=\"low\",reason=\"priority_limit\"} 0",
        "tidegate_finished_total{priority=\"normal\",outcome=\"success\"} 1",
        "tidegate_load_state{state=\"healthy\"} 1",
        "tidegate_requests_answered_total{class=\"2xx\"} 3",
        "tidegate_requests_duration_seconds_count{priority=\"high\"} 1",
        "tidegate_global_limit 2000",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    promtool_accepts(text);
}

fn promtool_accepts(text: &str) {
    let Verdict { code, complaints } = check_metrics(text).unwrap();
    assert!(code == Some(0) && complaints.is_empty(), "{complaints}");
}

/// As many connections as the admin port has, of which half said nothing and half the beginning of a request.
#[tokio::test]
async fn silent_connections_do_not_keep_operators_out_for_long() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let admin = gateway.admin;
    let start = Instant::now();
    let mut silent = Vec::new();
    for number in 0..256 {
        let mut tcp = TcpStream::connect(admin).await.unwrap();
        let said: &[u8] = if number % 2 == 0 { b"" } else { b"GET /health/live HTTP/1.1\r\n" };
        tcp.write_all(said).await.unwrap();
        silent.push(tcp);
    }
    assert_eq!(Client::new(admin).get("/health/live").await.status, 200);
    let took = start.elapsed();
    // Five seconds, where a client has thirty for its head.
    assert!(took < Duration::from_secs(20), "{took:?}");
    for mut tcp in silent {
        let mut rest = Vec::new();
        let _ = tcp.read_to_end(&mut rest).await;
    }
}

#[tokio::test]
async fn an_operator_who_asks_now_and_then_keeps_the_connection() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("[listen]\nheader_timeout_ms = 2000\n", &[upstream.address]);
    let limit = Duration::from_secs(2);
    undisturbed("five questions with pauses", async || {
        let mut asked_last = Instant::now();
        let mut tcp = TcpStream::connect(gateway.admin).await.unwrap();
        for _ in 0..5 {
            let since = std::mem::replace(&mut asked_last, Instant::now());
            let ask = b"GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n";
            let asked = tcp.write_all(ask).await;
            let mut answer = [0; 12];
            if asked.is_err() || tcp.read_exact(&mut answer).await.is_err() {
                assert!(since.elapsed() >= limit, "closed after {:?}", since.elapsed());
                return None;
            }
            assert_eq!(&answer, b"HTTP/1.1 200");
            // The rest of the answer has come with its head, or does so at once.
            tokio::time::sleep(Duration::from_millis(600)).await;
            let _ = tcp.read(&mut [0; 4096]).await;
        }
        Some(())
    })
    .await;
}
