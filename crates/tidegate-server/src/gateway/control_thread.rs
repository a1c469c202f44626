use super::Shared;
use crate::admission::{Observer, observe_forever, observe_shares};
use crate::control::{Door, Handler, TaskRoute, answer, answer_task, serve_operators};
use crate::load::{Scraper, watch_forever};
use crate::rescue::{self, Asker, Unread};
use crate::upstream::{Connector, probe_forever, watch_destinations};
use http::Request;
use hyper::body::Incoming;
use std::sync::Arc;
use tidegate::admission::RetryAdvisor;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

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
    tokio::spawn(observe_shares(Arc::clone(&shared)));
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
    let timeout = shared.config.listen.header_timeout;
    let answer_one = move |request: Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move {
            if let Some(handler) = Handler::of(request.uri().path()) {
                return answer(&shared, handler, request, false).await;
            }
            match (&shared.tasks, TaskRoute::of(request.uri().path())) {
                (Some(desk), Some(route)) => {
                    answer_task(&shared, desk, route, request, Door::Operators).await
                }
                _ => Asker::of(&request).fit(rescue::not_found(), Unread::Some),
            }
        }
    };
    serve_operators(listener, timeout, answer_one).await;
}
