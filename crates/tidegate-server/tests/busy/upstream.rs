use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};

/// An upstream that counts requests, holds them until its gate is open, and reports a scripted load.
pub struct Upstream {
    pub address: SocketAddr,
    state: Arc<State>,
    accepting: AbortHandle,
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Came {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

struct State {
    open: watch::Sender<bool>,
    /// One for each request that is answered although the gate is closed.
    let_through: Semaphore,
    page: Mutex<Page>,
    /// One for each page that may be answered, while they are counted.
    pages: Semaphore,
    pages_asked: AtomicUsize,
    models: Mutex<Models>,
    orca: Mutex<Option<&'static str>>,
    /// The time that it takes for a request once its gate is open.
    service: Mutex<Duration>,
    came: Mutex<Vec<Came>>,
    active: AtomicUsize,
    peak: AtomicUsize,
}

/// What stands at `/metrics`.
enum Page {
    None,
    Text(String),
    /// The requests that are there, truly.
    Honest,
}

/// What stands at `/v1/models`.
enum Models {
    None,
    /// It says that it is not up yet; so often so far.
    Starting(usize),
    One(&'static str),
}

/// More pages than any test asks for.
const UNCOUNTED: usize = 1_000_000;

// === impl Upstream ===

impl Upstream {
    /// One that answers at once, and has no metrics.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            open: watch::channel(true).0,
            let_through: Semaphore::new(0),
            page: Mutex::new(Page::None),
            pages: Semaphore::new(UNCOUNTED),
            pages_asked: AtomicUsize::new(0),
            models: Mutex::new(Models::None),
            orca: Mutex::default(),
            service: Mutex::default(),
            came: Mutex::default(),
            active: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&state))).abort_handle();
        Self { address, state, accepting }
    }

    /// One that answers nothing until it is opened.
    pub async fn closed() -> Self {
        let upstream = Self::start().await;
        upstream.close();
        upstream
    }

    /// Several that answer nothing until they are opened.
    pub async fn several(count: usize) -> Vec<Self> {
        let mut upstreams = Vec::new();
        for _ in 0..count {
            upstreams.push(Self::closed().await);
        }
        upstreams
    }

    /// Takes this time for a request.
    pub fn taking(self, service: Duration) -> Self {
        *self.state.service.lock().unwrap() = service;
        self
    }

    /// With this page of metrics.
    pub fn telling(self, page: &str) -> Self {
        self.tell(page);
        self
    }

    /// With metrics that tell the requests it has.
    pub fn honest(self) -> Self {
        *self.state.page.lock().unwrap() = Page::Honest;
        self
    }

    pub fn tell(&self, page: &str) {
        *self.state.page.lock().unwrap() = Page::Text(page.to_owned());
    }

    /// Does not tell its models yet.
    pub fn start_models(&self) {
        *self.state.models.lock().unwrap() = Models::Starting(0);
    }

    /// Tells one model from now on.
    pub fn tell_model(&self, name: &'static str) {
        *self.state.models.lock().unwrap() = Models::One(name);
    }

    /// How often its models were asked for before it told them.
    pub fn models_asked(&self) -> usize {
        match *self.state.models.lock().unwrap() {
            Models::Starting(asked) => asked,
            Models::None | Models::One(_) => 0,
        }
    }

    /// Says this in the ORCA header of every answer.
    pub fn tell_in_headers(&self, load: &'static str) {
        *self.state.orca.lock().unwrap() = Some(load);
    }

    /// Lets nobody read the metrics until it is allowed.
    pub fn hold_pages(&self) {
        self.state.pages.forget_permits(UNCOUNTED);
    }

    /// Lets so many more pages be read.
    pub fn allow_pages(&self, count: usize) {
        self.state.pages.add_permits(count);
    }

    /// How often the metrics were asked for.
    pub fn pages_asked(&self) -> usize {
        self.state.pages_asked.load(Ordering::SeqCst)
    }

    pub fn open(&self) {
        self.state.open.send_replace(true);
    }

    pub fn close(&self) {
        self.state.open.send_replace(false);
    }

    /// Answers one request, also while it is closed.
    pub fn let_one_through(&self) {
        self.state.let_through.add_permits(1);
    }

    /// Requests that it has now.
    pub fn active(&self) -> usize {
        self.state.active.load(Ordering::SeqCst)
    }

    /// The most it had at once.
    pub fn peak(&self) -> usize {
        self.state.peak.load(Ordering::SeqCst)
    }

    pub fn came(&self) -> Vec<Came> {
        self.state.came.lock().unwrap().clone()
    }

    /// The paths of all requests, in the order in which they came.
    pub fn paths(&self) -> Vec<String> {
        self.came().into_iter().map(|one| one.path).collect()
    }

    pub fn last(&self) -> Came {
        self.came().pop().expect("the upstream was asked nothing")
    }

    /// Stops listening and cuts every connection.
    pub fn vanish(&self) {
        self.accepting.abort();
    }

    /// Vanishes, and waits until its sockets are closed. Until then a request may still reach it.
    pub async fn vanished(&self) {
        self.vanish();
        while !self.accepting.is_finished() {
            tokio::task::yield_now().await;
        }
        // The connections were aborted with it; each is dropped when its task's turn comes.
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.vanish();
    }
}

/// What an agent of ours tells: by rank, blocks in use and in all, tokens in prefill and requests.
pub fn page(ranks: &[(u64, u64, u64, u64)]) -> String {
    let line = |rank: usize, (used, total, tokens, requests): (u64, u64, u64, u64)| {
        [
            ("active_decode_blocks", used),
            ("kv_total_blocks", total),
            ("active_prefill_tokens", tokens),
            ("running_requests", requests),
            ("waiting_requests", 0),
        ]
        .map(|(name, value)| format!("tidegate_upstream_{name}{{rank=\"{rank}\"}} {value}\n"))
        .concat()
    };
    ranks.iter().enumerate().map(|(rank, load)| line(rank, *load)).collect()
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    // Aborted with this task.
    let mut connections = JoinSet::new();
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let service = service_fn(move |request| answer(Arc::clone(&state), request));
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(tcp), service)
                .await;
        });
    }
}

async fn answer(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(match request.uri().path() {
        "/metrics" => state.metrics().await,
        "/v1/models" => state.models(),
        _ => state.work(request).await,
    })
}

// === impl State ===

impl State {
    async fn metrics(&self) -> Response<Full<Bytes>> {
        // What it says is true when it is asked, however late the answer is read.
        let text = match &*self.page.lock().unwrap() {
            Page::None => None,
            Page::Text(text) => Some(text.clone()),
            Page::Honest => {
                let requests = self.active.load(Ordering::SeqCst) as u64;
                Some(page(&[(requests, 1000, 0, requests)]))
            }
        };
        self.pages_asked.fetch_add(1, Ordering::SeqCst);
        self.pages.acquire().await.unwrap().forget();
        match text {
            Some(text) => Response::new(Full::from(text)),
            None => status(StatusCode::NOT_FOUND),
        }
    }

    fn models(&self) -> Response<Full<Bytes>> {
        match &mut *self.models.lock().unwrap() {
            Models::None => status(StatusCode::NOT_FOUND),
            Models::Starting(asked) => {
                *asked += 1;
                status(StatusCode::SERVICE_UNAVAILABLE)
            }
            Models::One(name) => {
                Response::new(Full::from(format!("{{\"data\":[{{\"id\":\"{name}\"}}]}}")))
            }
        }
    }

    async fn work(self: Arc<Self>, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let _held = Held::new(&self);
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let path = parts.uri.path().to_owned();
        self.came.lock().unwrap().push(Came { path, headers: parts.headers, body });
        let mut open = self.open.subscribe();
        tokio::select! {
            biased;
            opened = open.wait_for(|open| *open) => drop(opened.unwrap()),
            permit = self.let_through.acquire() => permit.unwrap().forget(),
        }
        let service = *self.service.lock().unwrap();
        if !service.is_zero() {
            tokio::time::sleep(service).await;
        }
        let mut response = Response::new(Full::from("done"));
        if let Some(load) = *self.orca.lock().unwrap() {
            response.headers_mut().insert("endpoint-load-metrics", load.parse().unwrap());
        }
        response
    }
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

/// A request that an upstream has.
struct Held(Arc<State>);

// === impl Held ===

impl Held {
    fn new(state: &Arc<State>) -> Self {
        let active = state.active.fetch_add(1, Ordering::SeqCst) + 1;
        state.peak.fetch_max(active, Ordering::SeqCst);
        Self(Arc::clone(state))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::SeqCst);
    }
}
