use super::answer::answer_task;
use super::route::TaskRoute;
use super::task_api::TaskApi;
use crate::http::{Answer, Caller, Exposition, Extension};
use crate::tasks::manager::{write_metrics, write_worker_metrics};
use http::Request;
use hyper::body::Incoming;

impl Extension for TaskApi {
    fn owns(&self, path: &str) -> bool {
        TaskRoute::of(path).is_some()
    }

    fn answer<'a>(&'a self, request: Request<Incoming>, caller: Caller<'a>) -> Answer<'a> {
        // An owned path has a route.
        let route = TaskRoute::of(request.uri().path()).unwrap_or(TaskRoute::UnknownPath);
        Box::pin(answer_task(self, route, request, caller))
    }

    fn write_metrics(&self, out: &mut Exposition) {
        if let Some(meters) = &self.meters {
            write_metrics(out, meters);
        }
        if let Some(workers) = &self.workers {
            write_worker_metrics(out, workers);
        }
    }
}
