//! A real axum server and a real client, over loopback.

use axum::Router;
use axum::extract::Request;
use axum::routing::get;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tidegate::MessagePriority::Low;
use tidegate::layer::AdmissionLayer;
use tidegate::{InFlightTracker, PriorityLimits, Refusal, Sharing};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A body that a test feeds, part by part.
struct Fed(mpsc::Receiver<Bytes>);

impl Body for Fed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}

/// A server with one place for Low, whose answers are fed through these senders.
struct Server {
    address: SocketAddr,
    tracker: Arc<InFlightTracker>,
    feeds: mpsc::UnboundedReceiver<mpsc::Sender<Bytes>>,
}

/// A client's connection.
struct Connection {
    sender: SendRequest<Empty<Bytes>>,
    task: JoinHandle<()>,
}

// === impl Server ===

impl Server {
    async fn start() -> Self {
        let tracker =
            Arc::new(InFlightTracker::new(PriorityLimits::new(10, 5, 3, 1), Sharing::Strict));
        let (feed_tx, feeds) = mpsc::unbounded_channel();
        let feed_tx = Arc::new(Mutex::new(feed_tx));
        let handler = move || async move {
            let (tx, rx) = mpsc::channel(1);
            feed_tx.lock().expect("nobody panics").send(tx).expect("the test listens");
            axum::body::Body::new(Fed(rx))
        };
        let refuse = |refusal: Refusal| {
            let mut response = Response::new(axum::body::Body::from(refusal.to_string()));
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            response
        };
        let layer = AdmissionLayer::new(Arc::clone(&tracker), |_: &Request| Low, refuse);
        let app = Router::new().route("/", get(handler)).layer(layer);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { address, tracker, feeds }
    }

    async fn connect(&self) -> Connection {
        let stream = TcpStream::connect(self.address).await.expect("the server listens");
        let (sender, connection) = handshake(TokioIo::new(stream)).await.expect("it speaks HTTP");
        let task = tokio::spawn(async move {
            // An error here is the test that cuts its connection.
            let _ = connection.await;
        });
        Connection { sender, task }
    }
}

// === impl Connection ===

impl Connection {
    async fn get(&mut self) -> Response<Incoming> {
        let host = HeaderValue::from_static("localhost");
        let request = http::Request::get("/").header(header::HOST, host).body(Empty::new());
        self.sender.ready().await.expect("the connection is open");
        self.sender.send_request(request.expect("a valid request")).await.expect("an answer")
    }
}

#[tokio::test]
async fn a_stream_holds_its_place_until_its_end_and_others_are_told_to_come_back() {
    let mut server = Server::start().await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);

    let streaming = first.get().await;
    assert_eq!(streaming.status(), StatusCode::OK);
    let feed = server.feeds.recv().await.expect("the handler ran");

    let refused = second.get().await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()[header::RETRY_AFTER], "1");
    let reason = refused.into_body().collect().await.expect("a whole body").to_bytes();
    assert_eq!(reason, "low refused: the limit of low is reached");

    feed.send(Bytes::from_static(b"the end")).await.expect("the server reads");
    drop(feed);
    let answer = streaming.into_body().collect().await.expect("a whole body").to_bytes();
    assert_eq!(answer, "the end");
    // Freed before the end was sent, so before the client could see it.
    assert_eq!(server.tracker.stats().finished[Low.index()].success, 1);
    assert_eq!(second.get().await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_leaves_half_way_frees_its_place() {
    let mut server = Server::start().await;
    let mut client = server.connect().await;
    let mut streaming = client.get().await;
    let feed = server.feeds.recv().await.expect("the handler ran");
    feed.send(Bytes::from_static(b"a part")).await.expect("the server reads");
    streaming.frame().await.expect("a frame").expect("no error");
    assert_eq!(server.tracker.stats().low_in_flight, 1);

    client.task.abort();
    drop((streaming, client.sender));
    // Until the server has dropped the body.
    feed.closed().await;
    let stats = server.tracker.stats();
    assert_eq!((stats.low_in_flight, stats.finished[Low.index()].ignored), (0, 1));
}
