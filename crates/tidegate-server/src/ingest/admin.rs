use super::start::bind;
use super::{Flushed, Ingest, IngestError, IngestView, UsageError, usage_answer, write_metrics};
use crate::config::Config;
use crate::control::{Exposition, Handler, json_response, serve_operators, text, write_process};
use crate::proxy::GatewayBody;
use crate::rescue::{self, Asker, Unread};
use http::{Method, Request, Response, StatusCode};
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
}

// === impl IngestNode ===

impl IngestNode {
    /// Binds the ports, opens the store and starts the threads.
    ///
    /// # Errors
    ///
    /// When a port, the store or the tariffs can't be had, or the system refuses. Nothing is left running.
    pub fn start(config: &Config) -> Result<Self, IngestError> {
        let listener = bind(config.listen.admin_address, "--admin-listen")?;
        let admin_address = listener.local_addr()?;
        let ingest = Ingest::start(&config.ingest)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (view, header_timeout) = (Arc::clone(ingest.view()), config.listen.header_timeout);
        let (stop_admin, stop) = oneshot::channel();
        let admin =
            thread::Builder::new().name("tidegate-control".to_owned()).spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = serve(listener, header_timeout, view) => {}
                        // Dropped or used, it means the same.
                        _ = stop => {}
                    }
                });
                // A sum that somebody asked for and nobody waits for any more.
                runtime.shutdown_timeout(Duration::from_secs(1));
            })?;
        Ok(Self { ingest, admin_address, admin, stop_admin })
    }

    /// Where operators connect.
    #[must_use]
    pub fn admin_address(&self) -> SocketAddr {
        self.admin_address
    }

    /// What is told of it.
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

async fn serve(listener: StdTcpListener, header_timeout: Duration, view: Arc<IngestView>) {
    let started = SystemTime::now();
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the admin port can't be served"),
    };
    let answer_one = move |request: Request<Incoming>| {
        let view = Arc::clone(&view);
        async move { answer(&view, started, &request).await }
    };
    serve_operators(listener, header_timeout, answer_one).await;
}

async fn answer(
    view: &IngestView,
    started: SystemTime,
    request: &Request<Incoming>,
) -> Response<GatewayBody> {
    let asker = Asker::of(request);
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return asker.fit(rescue::read_only(), Unread::Some);
    }
    let response = match Handler::of(request.uri().path()) {
        Some(Handler::HealthLive) => live(view),
        Some(Handler::HealthReady) => ready(view),
        Some(Handler::Metrics) => text(metrics(view, started)),
        Some(Handler::Stats) => stats(view, started),
        Some(Handler::Usage) => usage(Some(view), request.uri().query()).await,
        Some(Handler::BusyThreshold | Handler::Decisions) | None => rescue::not_found(),
    };
    asker.fit(response, Unread::None)
}

fn live(view: &IngestView) -> Response<GatewayBody> {
    match view.has_failed() {
        false => json_response(StatusCode::OK, &json!({ "status": "live" })),
        true => json_response(StatusCode::SERVICE_UNAVAILABLE, &json!({ "status": "failed" })),
    }
}

fn ready(view: &IngestView) -> Response<GatewayBody> {
    if view.is_ready() {
        return json_response(StatusCode::OK, &json!({ "status": "ready" }));
    }
    json_response(StatusCode::SERVICE_UNAVAILABLE, &json!({ "status": "store_unavailable" }))
}

fn stats(view: &IngestView, started: SystemTime) -> Response<GatewayBody> {
    let uptime = started.elapsed().unwrap_or_default();
    let body = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": uptime.as_secs_f64(),
        "ingest": view.stats(),
    });
    json_response(StatusCode::OK, &body)
}

fn metrics(view: &IngestView, started: SystemTime) -> String {
    let mut out = Exposition::default();
    write_metrics(&mut out, &view.stats());
    write_process(&mut out, started);
    out.finish()
}

/// Answers a request for sums of usage.
pub(crate) async fn usage(view: Option<&IngestView>, query: Option<&str>) -> Response<GatewayBody> {
    let told = match view {
        Some(view) => usage_answer(view, query).await,
        None => Err(UsageError::Off),
    };
    match told {
        Ok(told) => json_response(StatusCode::OK, &told),
        Err(error) => rescue::usage(&error),
    }
}
