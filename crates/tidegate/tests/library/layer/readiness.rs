//! What being ready costs: nothing.

use super::support::{Scripted, layer, ok, request, tracker};
use http::{Request, Response};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};
use tidegate::MessagePriority::Low;
use tower::{Layer, Service, ServiceExt, service_fn};

/// Insists on being polled ready before each call, as services that reserve something when ready do.
#[derive(Default)]
struct Strict {
    ready: bool,
    reserved: u32,
    calls: u32,
}

impl Clone for Strict {
    /// Readiness is not cloned.
    fn clone(&self) -> Self {
        Self { ready: false, ..Self::default() }
    }
}

impl Service<Request<()>> for Strict {
    type Response = Response<Scripted>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if !std::mem::replace(&mut self.ready, true) {
            self.reserved += 1;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<()>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without having been polled ready");
        self.calls += 1;
        assert_eq!(self.calls, self.reserved, "each call uses what was reserved for it, once");
        ready(ok(Scripted::stream(&["a"])))
    }
}

#[tokio::test]
async fn being_ready_takes_no_permit() {
    let tracker = tracker();
    let mut service =
        layer(&tracker).layer(service_fn(async |_: Request<()>| ok(Scripted::default())));
    for _ in 0..10 {
        service.ready().await.expect("no error");
    }
    assert_eq!(tracker.stats().total_in_flight, 0);
}

#[tokio::test]
async fn idle_services_that_are_ready_hold_nothing_back_from_a_busy_one() {
    let tracker = tracker();
    let service =
        layer(&tracker).layer(service_fn(async |_: Request<()>| ok(Scripted::stream(&["a"]))));
    let mut idle: Vec<_> = (0..100).map(|_| service.clone()).collect();
    for connection in &mut idle {
        connection.ready().await.expect("no error");
    }
    assert_eq!(tracker.stats().total_in_flight, 0);
    let response = service.oneshot(request(Low)).await.expect("no error");
    assert!(response.status().is_success(), "the only place was free");
}

#[tokio::test]
async fn the_service_that_was_polled_ready_is_the_one_that_is_called() {
    let tracker = tracker();
    let mut service = layer(&tracker).layer(Strict::default());
    for round in 0..3 {
        let admitted =
            service.ready().await.expect("no error").call(request(Low)).await.expect("no error");
        assert!(admitted.status().is_success(), "round {round}");
        // The place is still held: this one is refused, and what was reserved for it waits for the next.
        let refused =
            service.ready().await.expect("no error").call(request(Low)).await.expect("no error");
        assert!(refused.status().is_server_error(), "round {round}");
    }
}

#[tokio::test]
async fn an_error_of_readiness_is_passed_on_and_takes_no_permit() {
    #[derive(Clone)]
    struct Broken;

    impl Service<Request<()>> for Broken {
        type Response = Response<Scripted>;
        type Error = &'static str;
        type Future = Ready<Result<Self::Response, &'static str>>;

        fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
            Poll::Ready(Err("closed"))
        }

        fn call(&mut self, _request: Request<()>) -> Self::Future {
            unreachable!("it is never ready")
        }
    }

    let tracker = tracker();
    let result = layer(&tracker).layer(Broken).oneshot(request(Low)).await;
    assert_eq!(result.map(|_| ()), Err("closed"));
    assert_eq!(tracker.stats().low_acquired, 0);
}
