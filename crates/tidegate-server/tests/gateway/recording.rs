use crate::support::{Client, Reserved, TestGateway, Upstream, eventually, undisturbed};
use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use serde_json::Value;
use std::time::{Duration, Instant};
use tidegate::MessagePriority;
use tidegate_server::gateway::decision_log::{Decision, RECORDERS_MAX, Verdict};

/// Begins to record, and waits for the first line.
async fn record(gateway: &TestGateway, path: &str) -> Response<Incoming> {
    let client = Client::new(gateway.admin);
    let request = client.request("GET", path).body(Full::<Bytes>::default());
    client.begin(request.expect("it is a request")).await.expect("it is answered")
}

/// All lines until the end.
async fn lines(response: Response<Incoming>) -> Vec<Value> {
    let bytes = response.into_body().collect().await.expect("it ends well").to_bytes();
    let text = String::from_utf8(bytes.to_vec()).expect("it is text");
    assert!(text.ends_with('\n'), "the last line is whole");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn decisions(lines: &[Value]) -> Vec<&Value> {
    lines.iter().filter(|line| line.get("at_us").is_some()).collect()
}

/// The lines until there are so many decisions among them. Then it is hung up on.
async fn lines_of(response: Response<Incoming>, count: usize) -> Vec<Value> {
    let (mut body, mut text) = (response.into_body(), String::new());
    loop {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines: Vec<_> =
            whole.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        if decisions(&lines).len() >= count {
            return lines;
        }
        let frame = body.frame().await.expect("it goes on").expect("it is whole");
        let bytes = frame.into_data().expect("it has no trailers");
        text.push_str(std::str::from_utf8(&bytes).expect("it is text"));
    }
}

#[tokio::test]
async fn every_decision_is_told_when_its_end_is_known() {
    undisturbed("three requests while it records", async || told_in_time().await).await;
}

/// Whether all was done while somebody recorded; if it was, it is judged.
async fn told_in_time() -> Option<()> {
    let upstream = Upstream::closed().await;
    let toml = "[admission]\nglobal_limit = 2\nhigh_limit = 1\nnormal_limit = 1\nlow_limit = 1\n\
                [[client]]\nname = \"dash\"\ntoken = \"0123456789abcdef\"\n";
    let gateway = TestGateway::start(toml, &[upstream.address]);
    let client = Client::new(gateway.address);
    let early = tokio::spawn(async move { client.get_as("/early", "high").await.status });
    eventually("the first is in flight", || gateway.in_flight() == 1).await;

    let start = Instant::now();
    let recording = record(&gateway, "/v1/decisions?for_s=3").await;
    assert_eq!(recording.headers()["content-type"], "application/x-ndjson");
    let request = client.request("GET", "/held").header("tidegate-token", "0123456789abcdef");
    let request = request.body(Full::<Bytes>::default()).expect("it is a request");
    let held = tokio::spawn(async move { client.send(request).await.status });
    eventually("the second is in flight", || gateway.in_flight() == 2).await;
    assert_eq!(client.get_as("/refused", "low").await.status, 503);
    upstream.gate.open();
    assert_eq!(
        (early.await.unwrap(), held.await.unwrap()),
        (200.try_into().unwrap(), 200.try_into().unwrap())
    );
    if start.elapsed() >= Duration::from_secs(2) {
        return None;
    }

    let lines = lines(recording).await;
    let head = &lines[0];
    assert_eq!((&head["format"], &head["version"]), (&"tidegate-decisions".into(), &1.into()));
    assert_eq!((&head["limits"]["global"], &head["sharing"]), (&2.into(), &"strict".into()));
    assert_eq!(head["in_flight"]["high"], 1);
    let told = decisions(&lines);
    assert_eq!(told.len(), 3, "{lines:?}");
    let of = |priority: &str| *told.iter().find(|line| line["priority"] == priority).unwrap();
    assert!(of("high")["at_us"].as_i64() < Some(0), "it came before: {}", of("high"));
    assert_eq!(of("normal")["client"], "dash");
    assert_eq!(of("normal")["decision"], "admitted");
    assert!(of("normal")["took_us"].as_u64() > Some(0));
    assert_eq!(of("low")["decision"], "global_limit");
    assert_eq!((of("low").get("took_us"), of("low").get("client")), (None, None));
    let end = lines.last().unwrap();
    assert_eq!(
        (&end["end"], &end["decisions"], &end["lost"]),
        (&"time".into(), &3.into(), &0.into())
    );
    assert!(!gateway.inner().control().decision_log().is_on(), "nobody records any more");
    Some(())
}

#[tokio::test]
async fn what_others_refuse_is_told_with_the_time_it_held_its_place() {
    let nobody = Reserved::new();
    let gateway = TestGateway::start("", &[nobody.address]);
    let recording = record(&gateway, "/v1/decisions?for_s=600").await;
    let client = Client::new(gateway.address);
    for _ in 0..8 {
        assert_ne!(client.get("/").await.status, 200);
    }
    let lines = lines_of(recording, 8).await;
    let told = decisions(&lines);
    assert_eq!(told.len(), 8);
    assert!(told.iter().all(|line| line["took_us"].is_u64()), "{told:?}");
}

#[tokio::test]
async fn a_recorder_that_stops_reading_holds_up_nobody_and_is_told_what_it_lost() {
    undisturbed("all is decided while it records", async || lost_in_time().await).await;
}

/// Whether all was done while somebody recorded, which a recorder that is waited for would prevent for ever; if it
/// was, it is judged.
async fn lost_in_time() -> Option<()> {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let start = Instant::now();
    let recording = record(&gateway, "/v1/decisions?for_s=10").await;
    let decision_log = gateway.inner().control().decision_log();
    // More than its buffer and all buffers of the sockets hold, told from here: thousands of requests would
    // take long.
    let decision = Decision {
        decided: Instant::now(),
        took: Some(Duration::from_millis(1)),
        priority: MessagePriority::Low,
        verdict: Verdict::Admitted,
        client: Some("a client with a name that is about as long as they are".into()),
    };
    let told = 400_000;
    for _ in 0..told {
        decision_log.publish(&decision);
    }
    for _ in 0..20 {
        assert_eq!(Client::new(gateway.address).get("/").await.status, 200);
    }
    if start.elapsed() >= Duration::from_secs(9) {
        return None;
    }
    assert_eq!(Client::new(gateway.admin).get("/v1/stats").await.status, 200);

    // Now it reads, until the time is over.
    let lines = lines(recording).await;
    let lost: u64 = lines[..lines.len() - 1].iter().filter_map(|line| line["lost"].as_u64()).sum();
    let end = lines.last().unwrap();
    assert_eq!(end["end"], "time", "{end}");
    assert!(lost > 0, "nobody reads that fast");
    assert_eq!(end["lost"].as_u64(), Some(lost), "what was lost is told in the stream");
    let written = decisions(&lines).len() as u64;
    assert_eq!(end["decisions"].as_u64(), Some(written));
    assert_eq!(written + lost, told + 20, "each is told or counted");
    Some(())
}

#[tokio::test]
async fn only_so_many_record_at_once_and_only_as_is_asked() {
    let gateway = TestGateway::start("", &[Upstream::start().await.address]);
    let mut recordings = Vec::new();
    for _ in 0..RECORDERS_MAX {
        recordings.push(record(&gateway, "/v1/decisions").await);
    }
    let admin = Client::new(gateway.admin);
    let refused = admin.get("/v1/decisions").await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["reason"]),
        (503, &"too_many_recorders".into())
    );
    recordings.clear();
    let decision_log = gateway.inner().control().decision_log();
    eventually("those who left record no longer", || !decision_log.is_on()).await;
    assert_eq!(record(&gateway, "/v1/decisions?for_s=1").await.status(), 200);
    let wrong = admin.get("/v1/decisions?seconds=1").await;
    assert_eq!((wrong.status.as_u16(), &wrong.json()["reason"]), (400, &"wrong_parameter".into()));
}

#[tokio::test]
async fn clients_can_not_record() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    assert_eq!(Client::new(gateway.address).get("/v1/decisions").await.status, 200);
    assert_eq!(upstream.last().uri.path(), "/v1/decisions", "there it is an upstream's path");
    assert!(!gateway.inner().control().decision_log().is_on());
}
