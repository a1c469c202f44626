//! Pages over real sockets: each scheme, kept connections, and everything that can go wrong.

use crate::reserved::Reserved;
use crate::support::page;
use bytes::Bytes;
use http::{Request, Response, StatusCode, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustix::time::{ClockId, clock_gettime};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegate_server::config::{Config, ProxyConfig, Scheme, UpstreamTarget};
use tidegate_server::gateway::load::{FetchError, Fetched, Scraped, Scraper, ServerKind};
use tidegate_server::gateway::upstream::Fleet;
use tidegate_server::http::client::Connector;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const LIMIT: Duration = Duration::from_secs(10);
const MAX_BYTES: usize = 1 << 20;

/// A server of one page, which counts its connections.
struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl Server {
    async fn start(page: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (counted, page) = (connections.clone(), Bytes::from(page));
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(tcp, page.clone()));
            }
        });
        Self { address, connections }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn serve<S>(stream: S, page: Bytes)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let page = page.clone();
        async move { Ok::<_, Infallible>(answer(&request, page)) }
    });
    let _ = auto::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn answer(request: &Request<Incoming>, page: Bytes) -> Response<Full<Bytes>> {
    let named = match request.version() {
        Version::HTTP_2 => request.uri().authority().is_some(),
        _ => request.headers().contains_key("host"),
    };
    let status = match (request.uri().path(), named) {
        ("/metrics", true) => StatusCode::OK,
        (_, true) => StatusCode::NOT_FOUND,
        (_, false) => StatusCode::BAD_REQUEST,
    };
    Response::builder().status(status).body(Full::new(page)).unwrap()
}

/// A scraper of one upstream.
struct Target {
    fleet: Fleet,
    scraper: Scraper,
}

impl Target {
    fn new(address: SocketAddr, scheme: Scheme) -> Self {
        Self::with(address, scheme, Config::default().proxy)
    }

    fn with(address: SocketAddr, scheme: Scheme, config: ProxyConfig) -> Self {
        let target = UpstreamTarget {
            name: address.to_string(),
            scheme,
            host: address.ip().to_string(),
            port: address.port(),
            models: None,
            limit: None,
            limit_preset: None,
            api_key: None,
        };
        let described = Config { upstreams: vec![target], ..Config::default() };
        let fleet = Fleet::new(&described).unwrap();
        let connector = Connector::new(&config, scheme == Scheme::Https).unwrap();
        let scraper = Scraper::new(&fleet, connector);
        Self { fleet, scraper }
    }

    async fn fetch(&self, path: &str) -> Result<Fetched, FetchError> {
        self.fetch_within(path, LIMIT, MAX_BYTES).await
    }

    async fn fetch_within(
        &self,
        path: &str,
        limit: Duration,
        max_bytes: usize,
    ) -> Result<Fetched, FetchError> {
        self.scraper.fetch(&self.fleet.all()[0], path, limit, max_bytes).await
    }
}

#[tokio::test]
async fn pages_come_on_one_kept_connection_by_http_1_and_2() {
    for scheme in [Scheme::Http, Scheme::H2c] {
        let server = Server::start(page("vllm_data_parallel")).await;
        let target = Target::new(server.address, scheme);
        for _ in 0..5 {
            let fetched = target.fetch("/metrics").await.unwrap();
            let scraped = Scraped::parse(&fetched.text());
            assert_eq!((scraped.kind, scraped.ranks.len()), (ServerKind::Vllm, 4));
        }
        // An answer that is no page leaves the connection usable too.
        assert!(matches!(
            target.fetch("/nowhere").await,
            Err(FetchError::Status(StatusCode::NOT_FOUND))
        ));
        target.fetch("/metrics?x=y").await.unwrap();
        assert_eq!(server.connections(), 1, "{scheme:?}");
    }
}

#[tokio::test]
async fn pages_come_by_tls() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let ca = std::env::temp_dir().join(format!("tidegate-scraping-{}.pem", std::process::id()));
    std::fs::write(&ca, made.cert.pem()).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(tcp).await {
                tokio::spawn(serve(stream, Bytes::from_static(b"tgi_queue_size 3\n")));
            }
        }
    });
    let config = ProxyConfig { tls_ca: Some(ca.clone()), ..Config::default().proxy };
    let target = Target::with(address, Scheme::Https, config);
    let fetched = target.fetch("/metrics").await;
    std::fs::remove_file(ca).unwrap();
    assert_eq!(Scraped::parse(&fetched.unwrap().text()).ranks[&0].waiting, Some(3));
}

#[tokio::test]
async fn a_page_larger_than_it_may_be_is_refused_and_the_next_one_is_read() {
    let server = Server::start("x".repeat(1_000)).await;
    let target = Target::new(server.address, Scheme::Http);
    let refused = target.fetch_within("/metrics", LIMIT, 999).await;
    assert!(matches!(refused, Err(FetchError::TooLarge(999))), "{refused:?}");
    assert_eq!(target.fetch_within("/metrics", LIMIT, 1_000).await.unwrap().body.len(), 1_000);
}

/// Answers each connection with these bytes, and then does what is said.
async fn canned(answer: &'static str, then_close: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut held: Vec<TcpStream> = Vec::new();
        loop {
            let (mut tcp, _) = listener.accept().await.unwrap();
            let mut head = [0; 1_024];
            let _ = tcp.read(&mut head).await;
            tcp.write_all(answer.as_bytes()).await.unwrap();
            if !then_close {
                held.push(tcp);
            }
        }
    });
    address
}

#[tokio::test]
async fn a_page_without_end_is_refused_at_its_bound() {
    let address =
        canned("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n8\r\naaaaaaaa\r\n", false);
    let target = Target::new(address.await, Scheme::Http);
    let refused = target.fetch_within("/metrics", LIMIT, 7).await;
    assert!(matches!(refused, Err(FetchError::TooLarge(7))), "{refused:?}");
}

#[tokio::test]
async fn what_is_late_breaks_or_is_not_there_is_told_apart() {
    let late = Target::new(canned("", false).await, Scheme::Http);
    let limit = Duration::from_millis(50);
    let answer = late.fetch_within("/metrics", limit, MAX_BYTES).await;
    assert!(matches!(answer, Err(FetchError::Late(_))), "{answer:?}");

    let stalled = canned("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", false).await;
    let answer = Target::new(stalled, Scheme::Http).fetch_within("/", limit, MAX_BYTES).await;
    assert!(matches!(answer, Err(FetchError::Late(_))), "{answer:?}");

    for cut in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", "SSH-2.0-OpenSSH\r\n"] {
        let answer = Target::new(canned(cut, true).await, Scheme::Http).fetch("/metrics").await;
        assert!(matches!(answer, Err(FetchError::Broken(_))), "{cut:?}: {answer:?}");
    }

    let nobody = Reserved::new();
    let answer = Target::new(nobody.address, Scheme::Http).fetch("/metrics").await;
    assert!(matches!(answer, Err(FetchError::Connect(_))), "{answer:?}");
    let answer = Target::new(nobody.address, Scheme::Http).fetch("/me trics").await;
    assert!(matches!(answer, Err(FetchError::Connect(_) | FetchError::Path(_))), "{answer:?}");
}

#[tokio::test]
async fn a_connection_that_was_closed_between_two_scrapes_is_replaced() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\ntgi_queue_size 3\n";
    let target = Target::new(canned(answer, true).await, Scheme::Http);
    for _ in 0..20 {
        assert_eq!(target.fetch("/metrics").await.unwrap().body.len(), 17);
    }
}

/// What nobody can do without who reads a page: each line, its words, and its number.
fn once_over(page: &str) -> f64 {
    let value = |line: &str| {
        line.split(['{', '}', ',', '=', '"', ' ']).next_back().and_then(|word| word.parse().ok())
    };
    page.lines().filter_map(value).filter(|value: &f64| value.is_finite()).sum()
}

fn thread_cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Both are work of this thread alone, in turn, by its own CPU time: a busy machine slows down both. It tells a
/// few times over the page from many times over it.
#[tokio::test]
async fn a_large_page_is_not_gone_over_again_and_again() {
    let engines: String = page("vllm_data_parallel").repeat(8);
    assert!(engines.len() > 200_000);
    let server = Server::start(engines).await;
    let fetched = Target::new(server.address, Scheme::Http).fetch("/metrics").await.unwrap();
    let mut ratios = Vec::new();
    for _ in 0..31 {
        let start_s = thread_cpu_s();
        let text = fetched.text();
        assert!(once_over(&text) > 0.0);
        let once_s = thread_cpu_s() - start_s;
        let start_s = thread_cpu_s();
        let scraped = Scraped::parse(&fetched.text());
        ratios.push((thread_cpu_s() - start_s) / once_s);
        assert_eq!((scraped.ranks.len(), scraped.skipped), (4, 0));
    }
    ratios.sort_by(f64::total_cmp);
    println!("reading takes as long as {:.1} times over the page", ratios[15]);
    assert!(ratios[15] < 10.0, "{ratios:.1?}");
}
