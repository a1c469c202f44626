//! Who is refused, and what a refusal is made of.

use crate::support::{Scripted, layer, next_frame, ok, request, tracker};
use http::{Request, StatusCode};
use http_body::Body;
use tidegate::MessagePriority::{self, Critical, High, Low, Normal};
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
