use super::answer::claim;
use super::error::TaskApiError;
use super::route::TaskRoute;
use crate::http::error_response::ResponseFormat;
use crate::http::read_body::read_away;
use crate::http::{Answer, Caller, Extension};
use http::Request;
use hyper::body::Incoming;

/// The paths of the task API on a node without tasks: every request is told that tasks are off.
///
/// Proxied, such a request would end in an error of an upstream that says nothing about tasks.
#[derive(Debug)]
pub struct TasksOff;

// === impl TasksOff ===

impl Extension for TasksOff {
    fn owns(&self, path: &str) -> bool {
        TaskRoute::of(path).is_some()
    }

    fn answer<'a>(&'a self, request: Request<Incoming>, caller: Caller<'a>) -> Answer<'a> {
        Box::pin(async move {
            let format = ResponseFormat::of(&request);
            let Caller { admission, port, .. } = caller;
            let claim = claim(admission.classifier(), admission.is_exposed(), &request, &port);
            let response = match claim {
                Ok(_) => TaskApiError::Off.respond(format),
                Err(unauthorized) => unauthorized.respond(format),
            };
            let unread = read_away(request).await;
            format.fit(response, unread)
        })
    }
}
