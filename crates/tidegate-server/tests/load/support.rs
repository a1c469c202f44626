use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;
use tidegate_server::config::{Config, LimitSetting};
use tidegate_server::gateway::Gateway;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Held by the test that is running.
pub static MACHINE: Mutex<()> = Mutex::new(());

/// A gateway on free ports with this configuration, in front of one upstream.
pub fn gateway(toml: &str, upstream: SocketAddr) -> Gateway {
    let text = format!("{toml}\n[[upstream]]\nurl = \"http://{upstream}\"\n");
    let mut config = Config::from_toml(&text).unwrap();
    // The admission limits are judged alone: an upstream here holds all that is sent to it.
    config.routing.limit = LimitSetting::Off;
    config.listen.address = "127.0.0.1:0".parse().unwrap();
    config.listen.admin_address = "127.0.0.1:0".parse().unwrap();
    // What is judged here are the admission limits: nothing waits before the upstream.
    config.routing.limit = LimitSetting::Off;
    Gateway::start(config).unwrap()
}

/// An upstream that takes this long for each request, once its gate is open.
pub async fn upstream(work: Duration) -> (SocketAddr, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (gate, opened) = watch::channel(true);
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            tcp.set_nodelay(true).unwrap();
            let opened = opened.clone();
            let service = service_fn(move |_: Request<Incoming>| {
                let mut opened = opened.clone();
                async move {
                    opened.wait_for(|open| *open).await.unwrap();
                    tokio::time::sleep(work).await;
                    Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("done")))
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(tcp), service),
            );
        }
    });
    (address, gate)
}

/// A connection on which requests are sent one after the other. Does as little as it can: the load should
/// be the gateway's and not the client's.
pub struct Wire {
    tcp: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    pub async fn connect(address: SocketAddr) -> Self {
        let tcp = TcpStream::connect(address).await.unwrap();
        tcp.set_nodelay(true).unwrap();
        Self { tcp, buffer: Vec::with_capacity(1024) }
    }

    /// Sends a request and answers its status, once its answer was read whole.
    pub async fn exchange(&mut self, request: &[u8]) -> u16 {
        self.tcp.write_all(request).await.unwrap();
        self.buffer.clear();
        loop {
            assert_ne!(
                self.tcp.read_buf(&mut self.buffer).await.unwrap(),
                0,
                "closed before it answered"
            );
            if let Some(status) = whole_answer(&self.buffer) {
                return status;
            }
        }
    }
}

fn whole_answer(bytes: &[u8]) -> Option<u16> {
    let text = std::str::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (body.len() >= length.parse::<usize>().unwrap()).then_some(status)
}

/// The bytes of a request at a priority.
pub fn request(method: &str, path: &str, priority: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nhost: x\r\ntidegate-priority: {priority}\r\n\r\n")
        .into_bytes()
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
