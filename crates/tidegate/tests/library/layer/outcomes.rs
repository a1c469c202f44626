//! Every way in which a request can end, and what becomes of its permit.

use super::support::{Scripted, layer, low_ended, next_frame, ok, request, tracker};
use http::{Request, Response};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use tidegate::MessagePriority::Low;
use tidegate::admission::OutcomeTotals;
use tidegate::layer::AdmittedBody;
use tidegate::{InFlightTracker, OwnedPermit};
use tower::{Layer, Service, ServiceExt, service_fn};

const SUCCESS: OutcomeTotals = OutcomeTotals { success: 1, ignored: 0, dropped: 0 };
const IGNORED: OutcomeTotals = OutcomeTotals { success: 0, ignored: 1, dropped: 0 };
const DROPPED: OutcomeTotals = OutcomeTotals { success: 0, ignored: 0, dropped: 1 };

/// The body of an admitted response that consists of this.
async fn admitted(tracker: &Arc<InFlightTracker>, body: Scripted) -> AdmittedBody<Scripted> {
    let mut body = Some(body);
    let service = service_fn(move |_: Request<()>| {
        let body = body.take().expect("one request");
        async move { ok(body) }
    });
    let response = layer(tracker).layer(service).oneshot(request(Low)).await.expect("no error");
    response.into_body()
}

#[tokio::test]
async fn a_streaming_body_holds_its_permit_until_its_end() {
    let tracker = tracker();
    let mut body = admitted(&tracker, Scripted::stream(&["a", "b"])).await;
    for _ in 0..2 {
        assert_eq!(tracker.stats().low_in_flight, 1);
        assert!(matches!(next_frame(&mut body).await, Some(Ok(_))));
    }
    assert_eq!(tracker.stats().low_in_flight, 1, "it does not know yet that it has ended");
    assert!(next_frame(&mut body).await.is_none());
    assert_eq!(low_ended(&tracker), SUCCESS);
    drop(body);
    assert_eq!(low_ended(&tracker), SUCCESS, "once");
}

#[tokio::test]
async fn a_body_that_knows_its_end_frees_its_place_with_the_last_frame() {
    let tracker = tracker();
    let mut body = admitted(&tracker, Scripted::sized(&["a", "b"])).await;
    next_frame(&mut body).await;
    assert_eq!(tracker.stats().low_in_flight, 1);
    next_frame(&mut body).await;
    assert_eq!(low_ended(&tracker), SUCCESS);
}

#[tokio::test]
async fn trailers_are_the_end() {
    let tracker = tracker();
    let mut body = admitted(&tracker, Scripted::stream(&["a"]).then_trailers()).await;
    next_frame(&mut body).await;
    assert_eq!(tracker.stats().low_in_flight, 1);
    let frame = next_frame(&mut body).await.expect("trailers").expect("no error");
    assert!(frame.is_trailers());
    assert_eq!(low_ended(&tracker), SUCCESS);
}

#[tokio::test]
async fn an_empty_body_frees_its_place_with_the_head_of_the_response() {
    let tracker = tracker();
    let _body = admitted(&tracker, Scripted::sized(&[])).await;
    assert_eq!(low_ended(&tracker), SUCCESS);
}

#[tokio::test]
async fn an_error_of_the_body_is_dropped() {
    let tracker = tracker();
    let mut body = admitted(&tracker, Scripted::stream(&["a"]).then_error()).await;
    next_frame(&mut body).await;
    assert!(matches!(next_frame(&mut body).await, Some(Err("the body broke"))));
    assert_eq!(low_ended(&tracker), DROPPED);
    assert!(next_frame(&mut body).await.is_none());
    assert_eq!(low_ended(&tracker), DROPPED, "once");
}

#[tokio::test]
async fn an_error_of_the_service_is_dropped() {
    let tracker = tracker();
    let service = service_fn(async |_: Request<()>| Err::<Response<Scripted>, _>("it broke"));
    let result = layer(&tracker).layer(service).oneshot(request(Low)).await;
    assert_eq!(result.map(|_| ()), Err("it broke"));
    assert_eq!(low_ended(&tracker), DROPPED);
}

#[tokio::test]
async fn a_body_dropped_half_way_is_ignored() {
    let tracker = tracker();
    let mut body = admitted(&tracker, Scripted::stream(&["a", "b"])).await;
    next_frame(&mut body).await;
    drop(body);
    assert_eq!(low_ended(&tracker), IGNORED);
}

#[tokio::test]
async fn a_response_whose_body_is_never_read_is_ignored() {
    let tracker = tracker();
    drop(admitted(&tracker, Scripted::sized(&["a"])).await);
    assert_eq!(low_ended(&tracker), IGNORED);
}

#[tokio::test]
async fn a_future_that_is_cancelled_frees_its_place() {
    let tracker = tracker();
    let service = service_fn(|_: Request<()>| pending::<Result<Response<Scripted>, Infallible>>());
    let mut service = layer(&tracker).layer(service);
    let never_polled = service.ready().await.expect("no error").call(request(Low));
    assert_eq!(tracker.stats().low_in_flight, 1, "decided in the call");
    drop(never_polled);
    assert_eq!(low_ended(&tracker), IGNORED);

    let mut polled = Box::pin(service.ready().await.expect("no error").call(request(Low)));
    assert!(poll_once(&mut polled).await.is_none(), "it never ends");
    drop(polled);
    assert_eq!(low_ended(&tracker).ignored, 2);
    assert_eq!(tracker.stats().low_in_flight, 0);
}

#[tokio::test]
async fn a_panic_of_the_handler_frees_its_place() {
    let tracker = tracker();
    let service =
        layer(&tracker).layer(service_fn(async |_: Request<()>| -> Result<_, Infallible> {
            if true {
                panic!("expected by this test");
            }
            ok(Scripted::default())
        }));
    let panicked = tokio::spawn(service.oneshot(request(Low))).await;
    assert!(panicked.expect_err("it panicked").is_panic());
    assert_eq!(low_ended(&tracker), IGNORED);
}

#[tokio::test]
async fn a_panic_inside_call_frees_its_place() {
    type Never = std::future::Ready<Result<Response<Scripted>, Infallible>>;
    let tracker = tracker();
    let service = layer(&tracker)
        .layer(service_fn(|_: Request<()>| -> Never { panic!("expected by this test") }));
    let panicked =
        tokio::spawn(async move { service.oneshot(request(Low)).await.map(|_| ()) }).await;
    assert!(panicked.expect_err("it panicked").is_panic());
    assert_eq!(low_ended(&tracker), IGNORED);
}

#[test]
fn futures_and_bodies_can_cross_threads() {
    fn is_send<T: Send>() {}
    is_send::<OwnedPermit>();
    is_send::<AdmittedBody<Scripted>>();
    is_send::<tidegate::layer::AdmissionFuture<std::future::Ready<()>, Scripted>>();
}

/// Polls once, and gives the result if there is one.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match std::pin::Pin::new(&mut *future).poll(cx) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
}
