use super::admin::usage;
use super::{IngestView, write_metrics};
use crate::http::error_response::{ResponseFormat, Unread};
use crate::http::{Answer, Caller, Exposition, Extension, Handler};
use http::Request;
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::sync::Arc;

/// Ingestion on the ports of a gateway: `/v1/usage`, a section of the statistics, and its series.
pub struct IngestExtension {
    /// The running ingestion; `None` when it is off.
    view: Option<Arc<IngestView>>,
}

// === impl IngestExtension ===

impl IngestExtension {
    /// An extension for this ingestion, or for none.
    #[must_use]
    pub fn new(view: Option<Arc<IngestView>>) -> Self {
        Self { view }
    }
}

impl Extension for IngestExtension {
    fn owns(&self, path: &str) -> bool {
        path == Handler::Usage.path()
    }

    fn answer<'a>(&'a self, request: Request<Incoming>, caller: Caller<'a>) -> Answer<'a> {
        Box::pin(async move {
            let format = ResponseFormat::of(&request);
            let exposed = caller.admission.is_exposed();
            let client = caller.admission.classifier().usage_client(&request, exposed);
            let response = match client {
                Ok(client) => usage(self.view.as_deref(), request.uri().query(), client).await,
                Err(unauthorized) => unauthorized.respond(format),
            };
            format.fit(response, Unread::None)
        })
    }

    fn stats(&self) -> Option<(&'static str, Value)> {
        Some(("ingest", json!(self.view.as_ref().map(|view| view.stats()))))
    }

    fn readiness(&self) -> Option<(&'static str, Value)> {
        Some(("ingest_store_ok", json!(self.view.as_ref().map(|view| view.is_ready()))))
    }

    fn write_metrics(&self, out: &mut Exposition) {
        if let Some(view) = &self.view {
            write_metrics(out, &view.stats());
        }
    }
}
