use super::Shared;
use crate::admission::{Observer, observe_forever};
use crate::control::{Handler, answer};
use crate::load::{Scraper, watch_forever};
use crate::rescue::{self, Asker, Unread};
use crate::upstream::{Connector, probe_forever, watch_destinations};
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tidegate::admission::RetryAdvisor;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::sleep;

/// Enough for every scraper and operator; one more waits for one of them to leave.
const CONNECTIONS_MAX: usize = 256;

/// Everything that is not a client's request: the admin port, the observer and the probes.
pub async fn run(
    listener: TcpListener,
    shared: Arc<Shared>,
    connector: Connector,
    stop: oneshot::Receiver<()>,
) {
    let admission = &shared.config.admission;
    let observer = Observer::new(RetryAdvisor::new(admission.retry), admission.warn_threshold);
    let every = shared.config.proxy.health_interval;
    tokio::spawn(observe_forever(
        observer,
        Arc::clone(&shared.tracker),
        Arc::clone(&shared.board),
        Arc::clone(&shared.alerts),
    ));
    let scraper = Scraper::new(&shared.fleet, connector.clone());
    let routing = shared.config.routing.clone();
    tokio::spawn(watch_forever(Arc::clone(&shared.fleet), scraper, routing));
    tokio::spawn(watch_destinations(Arc::clone(&shared.fleet), Arc::clone(&shared.slow)));
    tokio::spawn(probe_forever(Arc::clone(&shared.fleet), connector, every));
    tokio::select! {
        () = serve_admin(listener, Arc::clone(&shared)) => {}
        // The sender is dropped or used when the gateway ends; both mean the same.
        _ = stop => {}
    }
}

async fn serve_admin(listener: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed, so this waits for a place and never fails.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((tcp, _)) => {
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    serve_operator(tcp, shared).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection on the admin port");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve_operator(tcp: TcpStream, shared: Arc<Shared>) {
    let timeout = shared.config.listen.header_timeout;
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(timeout);
    let service = service_fn(move |request: Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move {
            Ok::<_, Infallible>(match Handler::of(request.uri().path()) {
                Some(handler) => answer(&shared, handler, request, false).await,
                None => Asker::of(&request).fit(rescue::not_found(), Unread::Some),
            })
        }
    });
    if let Err(error) = builder.serve_connection(TokioIo::new(tcp), service).await {
        tracing::debug!(%error, "an operator's connection ended");
    }
}
