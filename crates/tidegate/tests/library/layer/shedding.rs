//! Refusals: the priorities that are refused, the response and its Retry-After.

use super::support::{Scripted, layer, next_frame, ok, request, tracker};
use http::{Request, Response, StatusCode};
use http_body::Body;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate::MessagePriority::{self, Critical, High, Low, Normal};
use tidegate::Refusal;
use tidegate::admission::RetryBounds;
use tidegate::layer::AdmissionLayer;
use tower::{Layer, ServiceExt, service_fn};

#[tokio::test]
async fn each_priority_is_shed_at_its_own_limit_and_critical_never() {
    let tracker = tracker();
    let service =
        layer(&tracker).layer(service_fn(async |_: Request<()>| ok(Scripted::stream(&["a"]))));
    let mut unread = Vec::new();
    for (priority, places) in [(Low, 1), (Normal, 3), (High, 5), (Critical, 50)] {
        for _ in 0..50 {
            let response = service.clone().oneshot(request(priority)).await.expect("no error");
            unread.push((priority, response));
        }
        let admitted = unread
            .iter()
            .filter(|(of, response)| *of == priority && response.status().is_success());
        assert_eq!(admitted.count(), places, "{priority}");
    }
    let stats = tracker.stats();
    assert_eq!(
        (stats.low_shed, stats.normal_shed, stats.high_shed, stats.critical_shed),
        (49, 47, 45, 0)
    );
}

#[tokio::test]
async fn a_refusal_reaches_neither_the_service_nor_the_tracker_s_places() {
    let tracker = tracker();
    let _taken = tracker.try_acquire(Low).expect("the place is free");
    let service = layer(&tracker).layer(service_fn(async |_: Request<()>| {
        unreachable!("a refused request does not reach the service");
        #[allow(unreachable_code)]
        ok(Scripted::default())
    }));
    let response = service.oneshot(request(Low)).await.expect("no error");
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(tracker.stats().low_in_flight, 1, "only the one that was taken before");
    let mut body = response.into_body();
    let frame = next_frame(&mut body).await.expect("a frame").expect("no error");
    assert_eq!(frame.into_data().expect("data"), "priority_limit");
    drop(body);
    assert_eq!(tracker.stats().finished[Low.index()].total(), 0, "a refusal ends no permit");
}

#[tokio::test]
async fn the_body_says_what_the_body_inside_says() {
    let tracker = tracker();
    let service = layer(&tracker)
        .layer(service_fn(async |_: Request<()>| ok(Scripted::sized(&["a", "b"]).then_trailers())));
    for priority in [MessagePriority::High, MessagePriority::Low] {
        let response = service.clone().oneshot(request(priority)).await.expect("no error");
        let mut body = response.into_body();
        for left in (0..3).rev() {
            assert_eq!(body.size_hint().exact(), Some(left + 1));
            assert!(!body.is_end_stream());
            let frame = next_frame(&mut body).await.expect("a frame").expect("no error");
            assert_eq!(frame.is_trailers(), left == 0);
        }
        assert!(body.is_end_stream());
    }
}

fn wait_ms<B>(response: &Response<B>) -> u64 {
    let field =
        |name| response.headers()[name].to_str().expect("text").parse::<u64>().expect("a number");
    let wait_ms = field("retry-after-ms");
    assert_eq!(field("retry-after"), wait_ms.div_ceil(1000), "whole seconds, rounded up");
    wait_ms
}

#[tokio::test]
async fn a_refusal_names_a_wait_that_follows_the_time_that_requests_take() {
    let tracker = tracker();
    let service =
        layer(&tracker).layer(service_fn(async |_: Request<()>| ok(Scripted::stream(&["a"]))));
    let first = service.clone().oneshot(request(Low)).await.expect("no error");
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    // One request observes, the other is told: a quarter of the silence at least.
    let refused = [(); 2].map(|()| service.clone().oneshot(request(Low)));
    for (refused, least_ms) in refused.into_iter().zip([0, 200]) {
        let told_ms = wait_ms(&refused.await.expect("no error"));
        assert!(told_ms >= least_ms, "nothing has ended for 1.2 s: {told_ms} ms");
    }
    drop(first);

    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let admitted = service.clone().oneshot(request(Low)).await.expect("no error");
        let refused = service.clone().oneshot(request(Low)).await.expect("no error");
        drop(admitted);
        if wait_ms(&refused) < 100 {
            return;
        }
        assert!(Instant::now() < deadline, "{} ms", wait_ms(&refused));
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_closure_s_own_wait_stays_and_bounds_are_obeyed() {
    let tracker = tracker();
    let _taken = tracker.try_acquire(Low).expect("the slot is free");
    let minute = Duration::from_secs(60);
    let bounds = RetryBounds { min: minute, max: minute };
    let refuse = |refusal: Refusal| {
        let mut response = Response::new(Scripted::default());
        if refusal.priority == Low {
            response.headers_mut().insert("retry-after", 7.into());
        }
        response
    };
    for (bounded, expected) in [(Low, "7"), (Normal, "60")] {
        let classify = move |_: &Request<()>| bounded;
        let service = AdmissionLayer::new(Arc::clone(&tracker), classify, refuse)
            .retry_bounds(bounds)
            .layer(service_fn(async |_: Request<()>| ok(Scripted::stream(&["a"]))));
        let _taken: Vec<_> = (0..3).map(|_| tracker.try_acquire(bounded)).collect();
        let response = service.oneshot(request(bounded)).await.expect("no error");
        assert_eq!(response.headers()["retry-after"], expected);
    }
}
