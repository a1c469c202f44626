use super::start::bind;
use super::{Flushed, Ingest, IngestError, IngestView, UsageError, usage_answer, write_metrics};
use crate::config::{Client, Config};
use crate::http::admission::Classifier;
use crate::http::error_response::{ResponseFormat, Unread};
use crate::http::tls::{EITHER, PortFiles, TlsPort, TlsSetupErrors, reload_forever, write_tls};
use crate::http::{Exposition, Handler, HttpPort, ResponseBody, response, write_process};
use crate::pulse::Pulse;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use serde_json::json;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

/// A node that only takes records in: the ingestion, and an admin port for it.
pub struct IngestNode {
    ingest: Ingest,
    admin_address: SocketAddr,
    admin: JoinHandle<()>,
    stop_admin: oneshot::Sender<()>,
    pulse: Pulse,
}

// === impl IngestNode ===

impl IngestNode {
    /// Binds the ports, opens the store and starts the threads.
    ///
    /// # Errors
    ///
    /// When a port, the store or the tariffs can't be had, or the system refuses. Nothing is left running.
    pub fn start(config: &Config) -> Result<Self, IngestError> {
        let [admin_tls, ..] = ports_tls(config)?;
        let listener = bind(config.listen.admin_address, "--admin-listen")?;
        let admin_address = listener.local_addr()?;
        let ingest = Ingest::start(config)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut tls = ingest.tls().to_vec();
        tls.extend(admin_tls.clone());
        let state = Admin {
            view: Arc::clone(ingest.view()),
            classifier: Classifier::new(config),
            started: SystemTime::now(),
            address: admin_address,
            tls,
        };
        let port = HttpPort::admin(config.listen.header_timeout).tls(admin_tls.clone());
        let (stop_admin, stop) = oneshot::channel();
        let pulse = Pulse::new();
        let beating = pulse.clone();
        let admin =
            thread::Builder::new().name("tidegate-control".to_owned()).spawn(move || {
                runtime.block_on(async {
                    beating.beat_here();
                    tokio::spawn(reload_forever(admin_tls.into_iter().collect()));
                    tokio::select! {
                        () = state.serve(listener, port) => {}
                        // Dropped or used, it means the same.
                        _ = stop => {}
                    }
                });
                // A sum that somebody asked for and nobody waits for any more.
                runtime.shutdown_timeout(Duration::from_secs(1));
            })?;
        Ok(Self { ingest, admin_address, admin, stop_admin, pulse })
    }

    /// The address of the admin port.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// The signs of life of its control thread.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// The view of the ingestion.
    #[must_use]
    pub fn view(&self) -> &Arc<IngestView> {
        self.ingest.view()
    }

    /// Takes no more, stores and acknowledges what it has within the grace time, and waits for the end.
    pub fn shutdown(self, grace: Duration) -> Flushed {
        let flushed = self.ingest.shutdown(grace);
        let _ = self.stop_admin.send(());
        let _ = self.admin.join();
        flushed
    }
}

/// TLS of the admin port and of the ports of the ingestion.
fn ports_tls(config: &Config) -> Result<[Option<Arc<TlsPort>>; 3], TlsSetupErrors> {
    let (listen, ingest) = (&config.listen, &config.ingest);
    let plain = |name, files| PortFiles { name, files, protocols: &[] };
    TlsPort::load([
        PortFiles { name: "admin", files: listen.admin_tls.as_ref(), protocols: &EITHER },
        // The ingestion loads its own again; what is wrong with all of them is told at once.
        plain("frames", ingest.frames_tls.as_ref()),
        plain("lines", ingest.lines_tls.as_ref()),
    ])
}

/// State of the admin port.
struct Admin {
    view: Arc<IngestView>,
    classifier: Classifier,
    started: SystemTime,
    /// The address of the port.
    address: SocketAddr,
    tls: Vec<Arc<TlsPort>>,
}

// === impl Admin ===

impl Admin {
    async fn serve(self, listener: StdTcpListener, port: HttpPort) {
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!(%error, "the admin port can't be served"),
        };
        let admin = Arc::new(self);
        let answer_one = move |request: Request<Incoming>| {
            let admin = Arc::clone(&admin);
            async move { admin.answer(&request).await }
        };
        port.serve(listener, answer_one).await;
    }

    async fn answer(&self, request: &Request<Incoming>) -> Response<ResponseBody> {
        let format = ResponseFormat::of(request);
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return format.fit(Handler::read_only(), Unread::Some);
        }
        let handler = Handler::of(request.uri().path());
        let is_open = handler.is_none_or(|it| it.is_open_at(self.address));
        if !is_open && let Err(unauthorized) = self.classifier.require_operator(request) {
            return format.fit(unauthorized.respond(format), Unread::None);
        }
        let view = &*self.view;
        let response = match handler {
            Some(Handler::HealthLive) => live(view),
            Some(Handler::HealthReady) => ready(view),
            Some(Handler::Metrics) => response::metrics(self.metrics()),
            Some(Handler::Stats) => stats(view, self.started),
            Some(Handler::Usage) => usage(Some(view), request.uri().query(), None).await,
            Some(Handler::BusyThreshold | Handler::Decisions) | None => Handler::not_found(),
        };
        format.fit(response, Unread::None)
    }

    fn metrics(&self) -> String {
        let mut out = Exposition::default();
        write_metrics(&mut out, &self.view.stats());
        write_tls(&mut out, &self.tls);
        write_process(&mut out, self.started);
        out.finish()
    }
}

fn live(view: &IngestView) -> Response<ResponseBody> {
    match view.has_failed() {
        false => response::health(true, &json!({ "status": "live" })),
        true => response::health(false, &json!({ "status": "failed" })),
    }
}

fn ready(view: &IngestView) -> Response<ResponseBody> {
    match view.is_ready() {
        true => response::health(true, &json!({ "status": "ready" })),
        false => response::health(false, &json!({ "status": "store_unavailable" })),
    }
}

fn stats(view: &IngestView, started: SystemTime) -> Response<ResponseBody> {
    let uptime = started.elapsed().unwrap_or_default();
    let body = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": uptime.as_secs_f64(),
        "ingest": view.stats(),
    });
    response::json(&body)
}

/// Answers a request for sums of usage, as this client may read them if it is one.
pub(super) async fn usage(
    view: Option<&IngestView>,
    query: Option<&str>,
    client: Option<&Client>,
) -> Response<ResponseBody> {
    let answer = match view {
        Some(view) => usage_answer(view, query, client).await,
        None => Err(UsageError::Off),
    };
    match answer {
        Ok(usage) => response::json(&usage),
        Err(error) => error.respond(),
    }
}
