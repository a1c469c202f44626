//! An executor on a free port, and a client that opens a connection for each request.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_server::tasks::execution::CapacityReport;
use tidegate_server::tasks::executor::{Executor, ExecutorConfig, MockRunner, Runner, Worker};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Longest wait of a test; only a failed one reaches it.
pub const LONG: Duration = Duration::from_secs(30);

/// An executor that ends with its test.
pub struct TestWorker {
    pub worker: Worker,
}

/// A response with its whole body.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A configuration with so many slots.
pub fn slots(count: u32) -> ExecutorConfig {
    ExecutorConfig::new("here", count)
}

/// A runner that interprets the code, and accepts any runtime.
pub fn mock() -> Runner {
    Runner::Mock(MockRunner::new(Duration::from_millis(50), Vec::new()))
}

/// An execution of this code.
pub fn code(id: &str, code: &str) -> Value {
    json!({"eval_id": id, "code": code})
}

/// A body with more fields.
pub fn with(mut body: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

/// One request on its own connection.
pub async fn send(address: SocketAddr, request: Request<Full<Bytes>>) -> Answer {
    let tcp = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(tcp)).await.unwrap();
    tokio::spawn(connection);
    let answered = timeout(LONG, async {
        let response = sender.send_request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: head.status, headers: head.headers, body }
    });
    answered.await.unwrap()
}

/// A request with a body of any kind.
pub fn request(method: Method, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(path).header("host", "127.0.0.1");
    request.body(Full::new(body.into())).unwrap()
}

// === impl TestWorker ===

impl TestWorker {
    pub fn start(count: u32) -> Self {
        Self::with(slots(count), mock())
    }

    pub fn with(config: ExecutorConfig, runner: Runner) -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { worker: Worker::start(listen, config, runner).unwrap() }
    }

    pub fn executor(&self) -> &Executor {
        self.worker.executor()
    }

    pub fn address(&self) -> SocketAddr {
        self.worker.address()
    }

    pub async fn ask(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Answer {
        send(self.address(), request(method, path, body)).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, Bytes::new()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.ask(Method::DELETE, path, Bytes::new()).await
    }

    pub async fn execute(&self, body: Value) -> Answer {
        self.ask(Method::POST, "/execute", body.to_string()).await
    }

    pub async fn reserve(&self, body: Value) -> Answer {
        self.ask(Method::POST, "/reserve", body.to_string()).await
    }

    pub async fn capacity(&self) -> CapacityReport {
        serde_json::from_slice(&self.get("/capacity").await.body).unwrap()
    }

    /// Waits for an execution's end, and returns its view.
    pub async fn ended(&self, id: &str) -> Value {
        let over = async {
            loop {
                let view = self.get(&format!("/executions/{id}?wait_ms=5000")).await.json();
                if view.get("reason").is_some() {
                    return view;
                }
                // A change, but not the end.
                sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(LONG, over).await.unwrap()
    }

    /// Waits until the capacity report satisfies a condition.
    pub async fn until(&self, what: &str, is: impl Fn(&CapacityReport) -> bool) {
        let looking = async {
            while !is(&self.executor().capacity()) {
                sleep(Duration::from_millis(2)).await;
            }
        };
        assert!(timeout(LONG, looking).await.is_ok(), "never: {what}");
    }
}

// === impl Answer ===

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// The JSON of a 200 response.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{:?}", self.body);
        self.json()
    }

    /// Checks a refusal, which has FastAPI's fields and those of Tidegate.
    #[track_caller]
    pub fn refused(&self, status: u16, reason: &str) -> Value {
        assert_eq!(self.status, status, "{:?}", self.body);
        let body = self.json();
        assert_eq!(body["error"]["reason"], reason, "{body}");
        assert_eq!(body["detail"], body["error"]["message"], "{body}");
        assert!(body["error"]["type"].is_string(), "{body}");
        body
    }
}
