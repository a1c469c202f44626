use super::answer::claim;
use super::{Door, TaskRoute, answer_task};
use crate::config::Config;
use crate::gateway::{Activity, Beside, Gateway};
use crate::manager::double::{Double, view};
use crate::proxy::{Gatekeeper, GatewayBody, Unauthorized};
use bytes::Bytes;
use http::request::Builder;
use http::{HeaderMap, Request, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tidegate::MessagePriority;
use tidegate::task::{OutputChunk, OutputStream, TaskStatus};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

const TRUE: &str = r#"{"runtime":"sh","code":"true"}"#;

/// A gateway whose manager is a double.
struct Node {
    gateway: Gateway,
    double: Double,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// A body that nobody may read.
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

// === impl Node ===

impl Node {
    fn start(toml: &str) -> Self {
        let mut config = Config::from_toml(toml).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        config.listen.address = "127.0.0.1:0".parse().unwrap();
        config.listen.admin_address = "127.0.0.1:0".parse().unwrap();
        config.listen.threads = 1;
        let double = Double::start();
        let beside = Beside { tasks: Some(double.desk()), ..Beside::default() };
        Self { gateway: Gateway::start_beside(config, beside).unwrap(), double }
    }

    async fn ask<B: Body<Data = Bytes> + Unpin>(&self, request: Request<B>, door: Door) -> Answer {
        let shared = self.gateway.shared();
        let route = TaskRoute::of(request.uri().path()).unwrap();
        let desk = shared.tasks.as_ref().unwrap();
        let response = answer_task(shared, desk, route, request, door).await;
        let (parts, body) = response.into_parts();
        let body = match body {
            GatewayBody::Events(_) => Bytes::new(),
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

    fn told(&self) -> (u16, String) {
        (self.code(), self.json()["reason"].as_str().unwrap_or_default().to_owned())
    }
}

fn client() -> Door {
    Door::Clients(Arc::new(Activity::new()).enter())
}

fn tasks() -> Builder {
    Request::post("/v1/tasks")
}

#[tokio::test]
async fn a_task_is_new_once_and_the_same_after_that() {
    let node = Node::start("");
    let first = node.post(tasks().header("idempotency-key", "k"), TRUE).await;
    assert_eq!(first.code(), 201);
    assert_eq!(first.headers["location"], "/v1/tasks/made-0");
    assert_eq!(
        (&first.json()["status"], &first.json()["timeout_ms"]),
        (&json!("queued"), &json!(60_000))
    );
    let again = node.post(tasks().header("idempotency-key", "k"), TRUE).await;
    assert_eq!((again.code(), again.json()), (200, first.json()));
    assert_eq!(again.headers["location"], "/v1/tasks/made-0");
    let got = node.get("/v1/tasks/made-0").await;
    assert_eq!((got.code(), got.json()), (200, first.json()));
}

#[tokio::test]
async fn two_clients_with_one_key_have_two_tasks() {
    let node = Node::start(
        "[[client]]\nname = \"a\"\ntoken = \"aaaaaaaaaaaaaaaa\"\n\
         [[client]]\nname = \"b\"\ntoken = \"bbbbbbbbbbbbbbbb\"\nmax_priority = \"low\"\n",
    );
    let post = async |token: &str| {
        let request = tasks().header("idempotency-key", "k").header("tidegate-token", token);
        node.post(request, r#"{"runtime":"sh","code":"x","priority":"high"}"#).await
    };
    let (a, b) = (post("aaaaaaaaaaaaaaaa").await, post("bbbbbbbbbbbbbbbb").await);
    assert_eq!((a.code(), b.code()), (201, 201));
    assert_ne!(a.json()["id"], b.json()["id"]);
    assert_eq!((&a.json()["priority"], &b.json()["priority"]), (&json!("high"), &json!("low")));
    assert_eq!(post("cccccccccccccccc").await.told(), (401, "token_unknown".to_owned()));
}

#[tokio::test]
async fn what_is_wrong_is_told_by_its_status_and_its_name() {
    let node = Node::start("");
    for (body, told) in [
        ("{", (400, "not_json")),
        (r#"{"runtime":"sh"}"#, (422, "wrong_value")),
        (r#"{"runtime":"sh","code":"x","timeout_ms":-5}"#, (422, "wrong_value")),
        (r#"{"runtime":"sh","code":"x","timeout_ms":86400001}"#, (422, "wrong_value")),
        (r#"{"runtime":"sh","code":""}"#, (422, "wrong_value")),
        (r#"{"runtime":"sh","cod":"x"}"#, (422, "unknown_field")),
        (r#"{"runtime":"ruby","code":"x"}"#, (422, "unknown_runtime")),
    ] {
        let answer = node.post(tasks(), body).await;
        assert_eq!(answer.told(), (told.0, told.1.to_owned()), "{body}");
        assert!(!answer.headers.contains_key("connection"), "{body}: it was read to its end");
    }
    let unknown = node.post(tasks(), r#"{"runtime":"ruby","code":"x"}"#).await.json();
    assert_eq!((&unknown["field"], &unknown["code"]), (&json!("runtime"), &json!(422)));
    assert!(unknown["message"].as_str().unwrap().contains("there are: sh"));
    let code = json!({ "runtime": "sh", "code": "x".repeat((1 << 20) + 1) }).to_string();
    assert_eq!(node.post(tasks(), &code).await.told(), (413, "too_long".to_owned()));
    let form = tasks().header("content-type", "multipart/form-data");
    assert_eq!(node.post(form, TRUE).await.told(), (415, "not_json_type".to_owned()));
    let page =
        tasks().header("origin", "https://elsewhere.example").header("host", "127.0.0.1:8000");
    assert_eq!(node.post(page, TRUE).await.told(), (403, "cross_origin".to_owned()));
    let named = r#"{"id":"n","runtime":"sh","code":"x"}"#;
    assert_eq!(node.post(tasks(), named).await.code(), 201);
    assert_eq!(node.post(tasks(), named).await.told(), (409, "other_under_id".to_owned()));
    assert_eq!(node.get("/v1/tasks/none").await.told(), (404, "unknown_task".to_owned()));
    assert_eq!(node.get("/v1/tasks/a%20b").await.told(), (404, "unknown_path".to_owned()));
    assert_eq!(node.get("/v1/tasks?limit=0").await.told(), (400, "wrong_parameter".to_owned()));
    let put = Request::put("/v1/tasks").body(Full::default()).unwrap();
    let put = node.ask(put, client()).await;
    assert_eq!((put.code(), &put.headers["allow"]), (405, &"GET, HEAD, POST".parse().unwrap()));
}

#[tokio::test]
async fn what_says_that_it_is_too_long_is_not_read() {
    let node = Node::start("");
    let answer = node.ask(tasks().body(Unread(1 << 30)).unwrap(), client()).await;
    assert_eq!(answer.told(), (413, "too_long".to_owned()));
    assert_eq!(answer.headers["connection"], "close", "it is still to come");
    // One that does not say so is read only so far.
    let endless = http_body_util::StreamBody::new(futures_util::stream::repeat_with(|| {
        Ok::<_, std::convert::Infallible>(Frame::data(Bytes::from_static(&[b' '; 65_536])))
    }));
    let answer = node.ask(tasks().body(endless).unwrap(), client()).await;
    assert_eq!(answer.told(), (413, "too_long".to_owned()));
}

#[tokio::test]
async fn under_full_load_work_is_refused_by_its_head_and_operators_get_through() {
    let limits = "[admission]\nglobal_limit = 4\nhigh_limit = 2\nnormal_limit = 1\nlow_limit = 1\n";
    let node = Node::start(limits);
    node.double.put(view("a"));
    let tracker = &node.gateway.shared().tracker;
    let full: Vec<_> = [MessagePriority::High, MessagePriority::High, MessagePriority::Normal]
        .map(|priority| tracker.try_admit_owned(priority).unwrap())
        .into();
    for door in [client(), Door::Operators] {
        let refused = node.ask(tasks().body(Unread(1 << 20)).unwrap(), door).await;
        assert_eq!(refused.code(), 503, "{:?}", refused.body);
        assert!(refused.headers.contains_key("retry-after"));
    }
    assert_eq!(node.get("/v1/tasks/a").await.code(), 503, "a client's look is data");
    let look = || Request::get("/v1/tasks/a").body(Full::default()).unwrap();
    assert_eq!(node.ask(look(), Door::Operators).await.code(), 200);
    let stop = Request::delete("/v1/tasks/a").body(Full::default()).unwrap();
    assert_eq!(node.ask(stop, client()).await.code(), 200, "to stop makes room");
    drop(full);
    assert_eq!(node.post(tasks(), TRUE).await.code(), 201);
    assert_eq!(tracker.stats().normal_in_flight, 0, "every permit has ended");
}

#[tokio::test]
async fn a_client_at_its_share_is_refused_and_operators_are_not_held_to_it() {
    let config = "[admission]\nglobal_limit = 4\nhigh_limit = 2\nnormal_limit = 2\nlow_limit = 1\n\
                  [[client]]\nname = \"a\"\ntoken = \"aaaaaaaaaaaaaaaa\"\nshare = 0.5\n";
    let node = Node::start(config);
    let shared = node.gateway.shared();
    let share = shared.gatekeeper.share_of("a").unwrap();
    let held = share.try_admit(MessagePriority::Normal).unwrap();
    let known = || tasks().header("tidegate-token", "aaaaaaaaaaaaaaaa");
    let refused = node.post(known(), TRUE).await;
    assert_eq!(refused.told(), (503, "client_share".to_owned()));
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(node.post(tasks(), TRUE).await.code(), 201, "who has no share");
    let operator = known().body(Full::from(TRUE)).unwrap();
    assert_eq!(node.ask(operator, Door::Operators).await.code(), 201);
    drop(held);
    assert_eq!(node.post(known(), TRUE).await.code(), 201);
    let in_flight = (share.stats().total_in_flight, shared.tracker.stats().total_in_flight);
    assert_eq!(in_flight, (0, 0), "every place is free");
}

#[tokio::test]
async fn a_task_is_cancelled_by_either_method_and_twice_is_once() {
    let node = Node::start("");
    node.double.put(view("a"));
    let cancel = || Request::post("/v1/tasks/a/cancel").body(Full::default()).unwrap();
    let first = node.ask(cancel(), client()).await;
    assert_eq!((first.code(), &first.json()["status"]), (200, &json!("cancelled")));
    assert_eq!(node.ask(cancel(), client()).await.code(), 200);
    let mut over = view("b");
    over.status = TaskStatus::Failed;
    node.double.put(over);
    let late = Request::delete("/v1/tasks/b").body(Full::default()).unwrap();
    let late = node.ask(late, client()).await;
    assert_eq!(late.told(), (409, "over".to_owned()));
    assert!(late.json()["message"].as_str().unwrap().contains("it has failed"));
}

#[tokio::test]
async fn output_is_chunks_or_one_stream_as_text() {
    let node = Node::start("");
    node.double.put(view("a"));
    let chunk = |stream, text: &str| OutputChunk { stream, text: text.to_owned() };
    node.double.write("a", 1, chunk(OutputStream::Stdout, "<b>one\n"));
    node.double.write("a", 1, chunk(OutputStream::Stderr, "two\n"));
    let both = node.get("/v1/tasks/a/output").await.json();
    assert_eq!(both["chunks"][1], json!({ "stream": "stderr", "text": "two\n" }));
    let one = node.get("/v1/tasks/a/output?stream=stdout").await;
    assert_eq!(
        (&*one.body, &one.headers["x-content-type-options"]),
        (&b"<b>one\n"[..], &"nosniff".parse().unwrap())
    );
    assert_eq!(one.headers["content-type"], "text/plain; charset=utf-8");
}

#[tokio::test]
async fn lists_and_executors_are_told() {
    let node = Node::start("");
    node.double.put(view("a"));
    let mut failed = view("b");
    failed.status = TaskStatus::Failed;
    node.double.put(failed);
    let list = node.get("/v1/tasks?status=failed&limit=5").await.json();
    assert_eq!(
        (list["tasks"].as_array().unwrap().len(), &list["tasks"][0]["id"]),
        (1, &json!("b"))
    );
    assert_eq!(node.get("/v1/executors").await.json(), json!({ "executors": [], "tasks": {} }));
}

#[tokio::test]
async fn only_so_many_operators_watch_that_others_get_through() {
    let node = Node::start("");
    node.double.put(view("a"));
    let shared = node.gateway.shared();
    let mut held = Vec::new();
    let watch = || Request::get("/v1/tasks/a/events").body(Full::<Bytes>::default()).unwrap();
    let refused = loop {
        let route = TaskRoute::of("/v1/tasks/a/events").unwrap();
        let desk = shared.tasks.as_ref().unwrap();
        let answer = answer_task(shared, desk, route, watch(), Door::Operators).await;
        match answer.status().as_u16() {
            200 => held.push(answer),
            _ => break answer,
        }
    };
    assert_eq!((held.len(), refused.status().as_u16()), (128, 503));
    assert!(refused.headers().contains_key("retry-after"));
    assert_eq!(held[0].headers()["content-type"], "text/event-stream");
    assert_eq!(node.ask(watch(), client()).await.code(), 200, "clients have places of their own");
}

#[tokio::test]
async fn a_head_has_no_body_and_its_length() {
    let node = Node::start("");
    node.double.put(view("a"));
    let head = Request::head("/v1/tasks/a").body(Full::default()).unwrap();
    let head = node.ask(head, client()).await;
    assert_eq!((head.code(), head.body.len()), (200, 0));
    let length = node.get("/v1/tasks/a").await.body.len();
    assert_eq!(head.headers["content-length"], length.to_string().as_str());
}

/// Reads from a socket until this has come.
async fn read_until(socket: &mut TcpStream, wanted: &str) -> String {
    let mut all = String::new();
    let mut buffer = [0; 4096];
    while !all.contains(wanted) {
        let read = timeout(Duration::from_secs(30), socket.read(&mut buffer)).await;
        let read = read.expect("something comes").unwrap();
        assert!(read > 0, "it ended before {wanted:?} came: {all}");
        all += &String::from_utf8_lossy(&buffer[..read]);
    }
    all
}

async fn connect(address: SocketAddr, path: &str) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

#[tokio::test]
async fn whoever_watches_is_not_quiet_on_either_port() {
    let node = Node::start("[listen]\nheader_timeout_ms = 100\n");
    for (id, address) in [("a", node.gateway.address()), ("b", node.gateway.admin_address())] {
        node.double.put(view(id));
        // A head that comes too late, because this thread stood still, is sent again.
        let mut socket = loop {
            let start = Instant::now();
            let socket = connect(address, &format!("/v1/tasks/{id}/events")).await;
            if matches!(socket.peek(&mut [0; 1]).await, Ok(1..)) {
                break socket;
            }
            assert!(start.elapsed() >= Duration::from_millis(100), "{:?}", start.elapsed());
        };
        let head = read_until(&mut socket, "\"status\":\"queued\"").await;
        assert!(head.contains("text/event-stream"), "{head}");
        // Longer than any quiet connection is kept.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut over = view(id);
        over.status = TaskStatus::Succeeded;
        node.double.put(over);
        read_until(&mut socket, "\"status\":\"succeeded\"").await;
    }
}

#[tokio::test]
async fn without_tasks_their_paths_are_not_ours() {
    let mut config = Config::default();
    config.listen.address = "127.0.0.1:0".parse().unwrap();
    config.listen.admin_address = "127.0.0.1:0".parse().unwrap();
    config.listen.threads = 1;
    let gateway = Gateway::start(config).unwrap();
    let mut admin = connect(gateway.admin_address(), "/v1/tasks").await;
    let admin = read_until(&mut admin, "unknown_path").await;
    assert!(admin.starts_with("HTTP/1.1 404") && admin.contains("admin port"), "{admin}");
    let issued = || gateway.shared().metrics().issued;
    let mut data = connect(gateway.address(), "/v1/tasks").await;
    read_until(&mut data, "\r\n\r\n").await;
    assert_eq!(issued(), 1, "it was proxied");
}

#[test]
fn on_a_port_that_others_reach_tasks_are_for_known_clients() {
    let decided = "[claims]\nanonymous = \"high\"\n\
                   [[client]]\nname = \"a\"\ntoken = \"aaaaaaaaaaaaaaaa\"\n";
    let config = Config::from_toml(decided).unwrap();
    let keeper = Gatekeeper::new(&config);
    let anybody = Request::get("/v1/tasks").body(()).unwrap();
    assert_eq!(claim(&keeper, false, &anybody, &client()).unwrap().client, None);
    assert_eq!(claim(&keeper, true, &anybody, &client()), Err(Unauthorized::Missing));
    assert_eq!(claim(&keeper, true, &anybody, &Door::Operators).unwrap().client, None);
    let known = Request::get("/v1/tasks").header("tidegate-token", "aaaaaaaaaaaaaaaa");
    let known = known.body(()).unwrap();
    assert_eq!(claim(&keeper, true, &known, &client()).unwrap().client, Some("a"));
}
