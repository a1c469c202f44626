use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A client that opens a connection a request.
#[derive(Clone, Copy)]
pub struct Client {
    address: SocketAddr,
    h2: bool,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub version: Version,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub trailers: Option<HeaderMap>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self { address, h2: false }
    }

    /// A client that speaks HTTP/2 with prior knowledge.
    pub fn h2(address: SocketAddr) -> Self {
        Self { address, h2: true }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path).body(Full::default()).unwrap()).await
    }

    pub async fn get_as(&self, path: &str, priority: &str) -> Answer {
        let request = self.request("GET", path).header("tidegate-priority", priority);
        self.send(request.body(Full::default()).unwrap()).await
    }

    /// A request for this client's target, in the form that its protocol needs.
    pub fn request(&self, method: &str, path: &str) -> http::request::Builder {
        if self.h2 {
            Request::builder().method(method).uri(format!("http://{}{path}", self.address))
        } else {
            Request::builder().method(method).uri(path).header("host", self.address.to_string())
        }
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Answer {
        Answer::read(self.begin(request).await.unwrap()).await
    }

    /// Sends a request and returns when the head of its answer is here.
    pub async fn begin<B>(&self, request: Request<B>) -> hyper::Result<Response<Incoming>>
    where
        B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let io = TokioIo::new(TcpStream::connect(self.address).await.unwrap());
        if self.h2 {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await?;
            tokio::spawn(connection);
            sender.send_request(request).await
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
            tokio::spawn(connection);
            sender.send_request(request).await
        }
    }
}

impl Answer {
    pub async fn read(response: Response<Incoming>) -> Self {
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap();
        let trailers = body.trailers().cloned();
        let (status, version, headers) = (parts.status, parts.version, parts.headers);
        Self { status, version, headers, body: body.to_bytes(), trailers }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .unwrap_or_else(|| panic!("no {name} in {:?}", self.headers))
            .to_str()
            .unwrap()
    }
}

/// Writes bytes to a fresh connection and reads until the other side closes it.
pub async fn raw(address: SocketAddr, bytes: &[u8]) -> String {
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // A reset after the answer is still an end.
    let _ = tcp.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}
