use super::answer::{answer_task, claim};
use super::limits::SubmissionSettings;
use super::route::TaskRoute;
use super::task_api::TaskApi;
use crate::config::Config;
use crate::http::admission::{Admission, Classifier, Unauthorized};
use crate::http::error_response::RejectionPolicy;
use crate::http::{Caller, InUse, Phase, Port, ResponseBody};
use crate::tasks::manager::fake_manager::{FakeManager, view};
use bytes::Bytes;
use http::request::Builder;
use http::{HeaderMap, Request, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::pin::Pin;
use std::task::{Context, Poll};
use tidegate::MessagePriority;
use tidegate::task::{OutputChunk, OutputStream, TaskStatus};
use tokio::sync::watch;

const TRUE: &str = r#"{"runtime":"sh","code":"true"}"#;

/// The API of a fake manager, with the admission of a configuration.
struct TestBed {
    api: TaskApi,
    fake: FakeManager,
    admission: Admission,
    policy: RejectionPolicy,
    phase: watch::Sender<Phase>,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// A body that must stay unread.
struct Unread(u64);

impl Body for Unread {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        panic!("the body was read");
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}

// === impl TestBed ===

impl TestBed {
    fn new(toml: &str) -> Self {
        let config = Config::from_toml(toml).unwrap_or_else(|errors| panic!("{errors}"));
        let fake = FakeManager::start();
        let stall_max = config.proxy.stream_idle_timeout;
        let admission = Admission::new(&config);
        let policy = RejectionPolicy {
            overload_status: config.routing.overload_status,
            exposed: admission.is_exposed(),
        };
        let phase = watch::channel(Phase::Serving).0;
        let api = TaskApi::new(fake.handle(), SubmissionSettings::default(), stall_max);
        Self { api, fake, admission, policy, phase }
    }

    fn caller(&self, port: Port) -> Caller<'_> {
        let phase = self.phase.subscribe();
        Caller { admission: &self.admission, policy: self.policy, phase, port }
    }

    async fn ask<B: Body<Data = Bytes> + Unpin>(&self, request: Request<B>, port: Port) -> Answer {
        let route = TaskRoute::of(request.uri().path()).unwrap();
        let response = answer_task(&self.api, route, request, self.caller(port)).await;
        let (parts, body) = response.into_parts();
        let body = match body {
            ResponseBody::Stream(_) => Bytes::new(),
            other => other.collect().await.unwrap().to_bytes(),
        };
        Answer { status: parts.status, headers: parts.headers, body }
    }

    async fn post(&self, request: Builder, body: &str) -> Answer {
        let request = request.method("POST").body(Full::from(body.to_owned())).unwrap();
        self.ask(request, client()).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Request::get(path).body(Full::default()).unwrap(), client()).await
    }
}

impl Answer {
    fn code(&self) -> u16 {
        self.status.as_u16()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn status_and_reason(&self) -> (u16, String) {
        (self.code(), self.json()["reason"].as_str().unwrap_or_default().to_owned())
    }
}

fn client() -> Port {
    Port::Clients(InUse::new(()))
}

fn tasks() -> Builder {
    Request::post("/v1/tasks")
}

#[tokio::test]
async fn a_repeated_submission_is_the_same_task() {
    let bed = TestBed::new("");
    let first = bed.post(tasks().header("idempotency-key", "k"), TRUE).await;
    assert_eq!(first.code(), 201);
    assert_eq!(first.headers["location"], "/v1/tasks/new-0");
    assert_eq!(
        (&first.json()["status"], &first.json()["timeout_ms"]),
        (&json!("queued"), &json!(60_000))
    );
    let again = bed.post(tasks().header("idempotency-key", "k"), TRUE).await;
    assert_eq!((again.code(), again.json()), (200, first.json()));
    assert_eq!(again.headers["location"], "/v1/tasks/new-0");
    let got = bed.get("/v1/tasks/new-0").await;
    assert_eq!((got.code(), got.json()), (200, first.json()));
}

#[tokio::test]
async fn two_clients_with_one_key_have_two_tasks() {
    let bed = TestBed::new(
        "[[client]]\nname = \"a\"\ntoken = \"aaaaaaaaaaaaaaaa\"\n\
         [[client]]\nname = \"b\"\ntoken = \"bbbbbbbbbbbbbbbb\"\nmax_priority = \"low\"\n",
    );
    let post = async |token: &str| {
        let request = tasks().header("idempotency-key", "k").header("tidegate-token", token);
        bed.post(request, r#"{"runtime":"sh","code":"x","priority":"high"}"#).await
    };
    let (a, b) = (post("aaaaaaaaaaaaaaaa").await, post("bbbbbbbbbbbbbbbb").await);
    assert_eq!((a.code(), b.code()), (201, 201));
    assert_ne!(a.json()["id"], b.json()["id"]);
    assert_eq!((&a.json()["priority"], &b.json()["priority"]), (&json!("high"), &json!("low")));
    assert_eq!(
        post("cccccccccccccccc").await.status_and_reason(),
        (401, "token_unknown".to_owned())
    );
}

#[tokio::test]
async fn errors_have_their_status_and_reason() {
    let bed = TestBed::new("");
    for (body, told) in [
        ("{", (400, "not_json")),
        (r#"{"runtime":"sh"}"#, (422, "wrong_value")),
        (r#"{"runtime":"sh","code":"x","timeout_ms":-5}"#, (422, "wrong_value")),
        (r#"{"runtime":"sh","code":"x","timeout_ms":86400001}"#, (422, "wrong_value")),
        (r#"{"runtime":"sh","code":""}"#, (422, "wrong_value")),
        (r#"{"runtime":"sh","cod":"x"}"#, (422, "unknown_field")),
        (r#"{"runtime":"ruby","code":"x"}"#, (422, "unknown_runtime")),
    ] {
        let answer = bed.post(tasks(), body).await;
        assert_eq!(answer.status_and_reason(), (told.0, told.1.to_owned()), "{body}");
        assert!(!answer.headers.contains_key("connection"), "{body}: the body was read to its end");
    }
    let unknown = bed.post(tasks(), r#"{"runtime":"ruby","code":"x"}"#).await.json();
    assert_eq!((&unknown["field"], &unknown["code"]), (&json!("runtime"), &json!(422)));
    assert!(unknown["message"].as_str().unwrap().contains("available: sh"));
    let code = json!({ "runtime": "sh", "code": "x".repeat((1 << 20) + 1) }).to_string();
    assert_eq!(bed.post(tasks(), &code).await.status_and_reason(), (413, "too_long".to_owned()));
    let form = tasks().header("content-type", "multipart/form-data");
    assert_eq!(bed.post(form, TRUE).await.status_and_reason(), (415, "not_json_type".to_owned()));
    let page =
        tasks().header("origin", "https://elsewhere.example").header("host", "127.0.0.1:8000");
    assert_eq!(bed.post(page, TRUE).await.status_and_reason(), (403, "cross_origin".to_owned()));
    let named = r#"{"id":"n","runtime":"sh","code":"x"}"#;
    assert_eq!(bed.post(tasks(), named).await.code(), 201);
    assert_eq!(bed.post(tasks(), named).await.status_and_reason(), (409, "id_in_use".to_owned()));
    assert_eq!(
        bed.get("/v1/tasks/none").await.status_and_reason(),
        (404, "unknown_task".to_owned())
    );
    assert_eq!(
        bed.get("/v1/tasks/a%20b").await.status_and_reason(),
        (404, "unknown_path".to_owned())
    );
    assert_eq!(
        bed.get("/v1/tasks?limit=0").await.status_and_reason(),
        (400, "wrong_parameter".to_owned())
    );
    let put = Request::put("/v1/tasks").body(Full::default()).unwrap();
    let put = bed.ask(put, client()).await;
    assert_eq!((put.code(), &put.headers["allow"]), (405, &"GET, HEAD, POST".parse().unwrap()));
}

#[tokio::test]
async fn a_body_declared_too_long_is_not_read() {
    let bed = TestBed::new("");
    let answer = bed.ask(tasks().body(Unread(1 << 30)).unwrap(), client()).await;
    assert_eq!(answer.status_and_reason(), (413, "too_long".to_owned()));
    assert_eq!(answer.headers["connection"], "close", "the body is unread");
    // A body without a length is read up to the limit alone.
    let endless = http_body_util::StreamBody::new(futures_util::stream::repeat_with(|| {
        Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(&[b' '; 65_536])))
    }));
    let answer = bed.ask(tasks().body(endless).unwrap(), client()).await;
    assert_eq!(answer.status_and_reason(), (413, "too_long".to_owned()));
}

#[tokio::test]
async fn at_full_load_submissions_are_refused_by_their_head_and_operators_get_through() {
    let limits = "[admission]\nglobal_limit = 4\nhigh_limit = 2\nnormal_limit = 1\nlow_limit = 1\n";
    let bed = TestBed::new(limits);
    bed.fake.put(view("a"));
    let tracker = bed.admission.tracker();
    let full: Vec<_> = [MessagePriority::High, MessagePriority::High, MessagePriority::Normal]
        .map(|priority| tracker.try_acquire_owned(priority).unwrap())
        .into();
    for port in [client(), Port::Operators] {
        let refused = bed.ask(tasks().body(Unread(1 << 20)).unwrap(), port).await;
        assert_eq!(refused.code(), 503, "{:?}", refused.body);
        assert!(refused.headers.contains_key("retry-after"));
    }
    assert_eq!(bed.get("/v1/tasks/a").await.code(), 503, "a client's read is data");
    let read = || Request::get("/v1/tasks/a").body(Full::default()).unwrap();
    assert_eq!(bed.ask(read(), Port::Operators).await.code(), 200);
    let stop = Request::delete("/v1/tasks/a").body(Full::default()).unwrap();
    assert_eq!(bed.ask(stop, client()).await.code(), 200, "a cancellation frees capacity");
    drop(full);
    assert_eq!(bed.post(tasks(), TRUE).await.code(), 201);
    assert_eq!(tracker.stats().normal_in_flight, 0, "every permit has ended");
}

#[tokio::test]
async fn a_client_at_its_share_is_refused_and_operators_are_exempt() {
    let config = "[admission]\nglobal_limit = 4\nhigh_limit = 2\nnormal_limit = 2\nlow_limit = 1\n\
                  [[client]]\nname = \"a\"\ntoken = \"aaaaaaaaaaaaaaaa\"\nshare = 0.5\n";
    let bed = TestBed::new(config);
    let admission = &bed.admission;
    let share = admission.classifier().share_of("a").unwrap();
    let permit = share.try_acquire(MessagePriority::Normal).unwrap();
    let known = || tasks().header("tidegate-token", "aaaaaaaaaaaaaaaa");
    let refused = bed.post(known(), TRUE).await;
    assert_eq!(refused.status_and_reason(), (503, "client_share".to_owned()));
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(bed.post(tasks(), TRUE).await.code(), 201, "a client without a share");
    let operator = known().body(Full::from(TRUE)).unwrap();
    assert_eq!(bed.ask(operator, Port::Operators).await.code(), 201);
    drop(permit);
    assert_eq!(bed.post(known(), TRUE).await.code(), 201);
    let in_flight = (share.stats().total_in_flight, admission.tracker().stats().total_in_flight);
    assert_eq!(in_flight, (0, 0), "every permit has ended");
}

#[tokio::test]
async fn a_task_is_cancelled_by_either_method_and_a_repeat_succeeds() {
    let bed = TestBed::new("");
    bed.fake.put(view("a"));
    let cancel = || Request::post("/v1/tasks/a/cancel").body(Full::default()).unwrap();
    let first = bed.ask(cancel(), client()).await;
    assert_eq!((first.code(), &first.json()["status"]), (200, &json!("cancelled")));
    assert_eq!(bed.ask(cancel(), client()).await.code(), 200);
    let mut over = view("b");
    over.status = TaskStatus::Failed;
    bed.fake.put(over);
    let late = Request::delete("/v1/tasks/b").body(Full::default()).unwrap();
    let late = bed.ask(late, client()).await;
    assert_eq!(late.status_and_reason(), (409, "over".to_owned()));
    assert!(late.json()["message"].as_str().unwrap().contains("it has failed"));
}

#[tokio::test]
async fn output_is_chunks_or_one_stream_as_text() {
    let bed = TestBed::new("");
    bed.fake.put(view("a"));
    let chunk = |stream, text: &str| OutputChunk { stream, text: text.to_owned() };
    bed.fake.write("a", 1, chunk(OutputStream::Stdout, "<b>one\n"));
    bed.fake.write("a", 1, chunk(OutputStream::Stderr, "two\n"));
    let both = bed.get("/v1/tasks/a/output").await.json();
    assert_eq!(both["chunks"][1], json!({ "stream": "stderr", "text": "two\n" }));
    let one = bed.get("/v1/tasks/a/output?stream=stdout").await;
    assert_eq!(
        (&*one.body, &one.headers["x-content-type-options"]),
        (&b"<b>one\n"[..], &"nosniff".parse().unwrap())
    );
    assert_eq!(one.headers["content-type"], "text/plain; charset=utf-8");
}

#[tokio::test]
async fn lists_of_tasks_and_executors() {
    let bed = TestBed::new("");
    bed.fake.put(view("a"));
    let mut failed = view("b");
    failed.status = TaskStatus::Failed;
    bed.fake.put(failed);
    let list = bed.get("/v1/tasks?status=failed&limit=5").await.json();
    assert_eq!(
        (list["tasks"].as_array().unwrap().len(), &list["tasks"][0]["id"]),
        (1, &json!("b"))
    );
    assert_eq!(bed.get("/v1/executors").await.json(), json!({ "executors": [], "tasks": {} }));
}

#[tokio::test]
async fn watchers_on_the_admin_port_are_limited() {
    let bed = TestBed::new("");
    bed.fake.put(view("a"));
    let mut held = Vec::new();
    let watch = || Request::get("/v1/tasks/a/events").body(Full::<Bytes>::default()).unwrap();
    let refused = loop {
        let route = TaskRoute::of("/v1/tasks/a/events").unwrap();
        let operator = bed.caller(Port::Operators);
        let answer = answer_task(&bed.api, route, watch(), operator).await;
        match answer.status().as_u16() {
            200 => held.push(answer),
            _ => break answer,
        }
    };
    assert_eq!((held.len(), refused.status().as_u16()), (128, 503));
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(held[0].headers()["content-type"], "text/event-stream");
    assert_eq!(bed.ask(watch(), client()).await.code(), 200, "clients have a limit of their own");
}

#[tokio::test]
async fn a_head_response_has_the_length_and_no_body() {
    let bed = TestBed::new("");
    bed.fake.put(view("a"));
    let head = Request::head("/v1/tasks/a").body(Full::default()).unwrap();
    let head = bed.ask(head, client()).await;
    assert_eq!((head.code(), head.body.len()), (200, 0));
    let length = bed.get("/v1/tasks/a").await.body.len();
    assert_eq!(head.headers["content-length"], length.to_string().as_str());
}

#[test]
fn on_an_exposed_port_tasks_are_for_known_clients() {
    let toml = "[claims]\nanonymous = \"high\"\n\
                   [[client]]\nname = \"a\"\ntoken = \"aaaaaaaaaaaaaaaa\"\n";
    let config = Config::from_toml(toml).unwrap();
    let classifier = Classifier::new(&config);
    let anonymous = Request::get("/v1/tasks").body(()).unwrap();
    assert_eq!(claim(&classifier, false, &anonymous, &client()).unwrap().client, None);
    assert_eq!(claim(&classifier, true, &anonymous, &client()), Err(Unauthorized::Missing));
    assert_eq!(claim(&classifier, true, &anonymous, &Port::Operators).unwrap().client, None);
    let known = Request::get("/v1/tasks").header("tidegate-token", "aaaaaaaaaaaaaaaa");
    let known = known.body(()).unwrap();
    assert_eq!(claim(&classifier, true, &known, &client()).unwrap().client, Some("a"));
}
