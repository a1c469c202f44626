use super::admin::{ControlPlane, answer};
use super::load::{Scraper, watch_forever};
use super::telemetry::{Observer, observe_forever};
use super::upstream::{Fleet, probe_forever, watch_upstreams};
use crate::config::Config;
use crate::http::admission::Admission;
use crate::http::client::Connector;
use crate::http::error_response::{ResponseFormat, Unread};
use crate::http::tls::{TlsPort, reload_forever};
use crate::http::{Handler, HttpPort, Port, ResponseBody};
use crate::pulse::Pulse;
use http::{Request, Response};
use hyper::body::Incoming;
use std::sync::Arc;
use tidegate::admission::RetryAdvisor;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The thread for everything that is not a client's request: the admin port, the observer and the probes.
pub struct ControlThread {
    pub config: Arc<Config>,
    pub admission: Arc<Admission>,
    pub fleet: Arc<Fleet>,
    pub control: Arc<ControlPlane>,
    pub connector: Connector,
    pub pulse: Pulse,
    /// TLS of the admin port.
    pub tls: Option<Arc<TlsPort>>,
    /// TLS of the ports whose certificates this thread reloads.
    pub reloaded: Vec<Arc<TlsPort>>,
}

// === impl ControlThread ===

impl ControlThread {
    /// Runs until it is stopped.
    pub async fn run(self, listener: TcpListener, stop: oneshot::Receiver<()>) {
        let Self { config, admission, fleet, control, connector, pulse, tls, reloaded } = self;
        pulse.beat_here();
        let settings = &config.admission;
        let observer = Observer::new(RetryAdvisor::new(), settings.warn_threshold);
        tokio::spawn(observe_forever(observer, admission, Arc::clone(control.alerts())));
        let scraper = Scraper::new(&fleet, connector.clone());
        tokio::spawn(watch_forever(Arc::clone(&fleet), scraper, config.routing.clone()));
        tokio::spawn(watch_upstreams(Arc::clone(&fleet), Arc::clone(control.slow())));
        tokio::spawn(probe_forever(fleet, connector, config.proxy.health_interval));
        tokio::spawn(reload_forever(reloaded));
        let answer_one = move |request: Request<Incoming>| {
            let control = Arc::clone(&control);
            async move { answer_operator(&control, request).await }
        };
        let port = HttpPort::admin(config.listen.header_timeout).tls(tls);
        tokio::select! {
            () = port.serve(listener, answer_one) => {}
            // The sender is dropped or used when the gateway ends; both mean the same.
            _ = stop => {}
        }
    }
}

async fn answer_operator(
    control: &ControlPlane,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let path = request.uri().path();
    if let Some(handler) = Handler::of(path) {
        // On the data port clients read their own usage; this port is the operators' alone.
        let allowed = control.caller(Port::Operators).admission.classifier();
        if handler == Handler::Usage
            && let Err(unauthorized) = allowed.require_operator(&request)
        {
            let format = ResponseFormat::of(&request);
            return format.fit(unauthorized.respond(format), Unread::Some);
        }
        return answer(control, handler, request, false).await;
    }
    match control.extension(path) {
        Some(extension) => extension.answer(request, control.caller(Port::Operators)).await,
        None => ResponseFormat::of(&request).fit(Handler::not_found(), Unread::Some),
    }
}
