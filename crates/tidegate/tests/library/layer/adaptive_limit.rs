//! The layer whose limit finds itself: its slots, its refusals, and the moves of its limit.

use super::support::{Scripted, next_frame, ok};
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use std::convert::Infallible;
use std::future::{Ready, pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tidegate::admission::RetryBounds;
use tidegate::layer::{AdaptiveLimitLayer, AdaptiveLimitService};
use tidegate::limit::{LimitConfig, LimitMove, LimitSnapshot};
use tokio::sync::Barrier;
use tower::{Layer, Service, ServiceExt, service_fn};

const LONG: Duration = Duration::from_secs(20);

fn layer(start: u32) -> AdaptiveLimitLayer {
    AdaptiveLimitLayer::new(LimitConfig { start, ..LimitConfig::default() })
}

fn in_flight(layer: &AdaptiveLimitLayer) -> u32 {
    layer.snapshot().in_flight
}

/// A service whose every response has this status and an empty body.
async fn respond(layer: &AdaptiveLimitLayer, status: StatusCode) -> Response<()> {
    let service = layer.layer(service_fn(async |_: Request<()>| {
        let mut response = Response::new(Scripted::sized(&[]));
        *response.status_mut() = status;
        Ok::<_, Infallible>(response)
    }));
    service.oneshot(Request::new(())).await.expect("no error").map(|_| ())
}

async fn fail(layer: &AdaptiveLimitLayer) {
    let service = service_fn(async |_: Request<()>| Err::<Response<Scripted>, _>("it broke"));
    let result = layer.layer(service).oneshot(Request::new(())).await;
    assert_eq!(result.map(|_| ()), Err("it broke"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_calls_at_once_exactly_the_limit_is_admitted() {
    let layer = layer(8);
    let service = layer.layer(service_fn(async |_: Request<()>| ok(Scripted::stream(&["a"]))));
    let barrier = Arc::new(Barrier::new(64));
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let (service, barrier) = (service.clone(), Arc::clone(&barrier));
            tokio::spawn(async move {
                barrier.wait().await;
                service.oneshot(Request::new(())).await.expect("no error")
            })
        })
        .collect();
    let mut responses = Vec::new();
    for call in calls {
        responses.push(call.await.expect("no panic"));
    }
    let admitted = responses.iter().filter(|response| response.status() == StatusCode::OK);
    assert_eq!(admitted.count(), 8);
    let refused = |response: &&Response<_>| response.status() == StatusCode::SERVICE_UNAVAILABLE;
    assert_eq!(responses.iter().filter(refused).count(), 56);
    assert_eq!(in_flight(&layer), 8, "until the bodies have ended");
    drop(responses);
    assert_eq!(in_flight(&layer), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_churn_the_service_never_sees_more_than_the_maximum() {
    const MAX: u32 = 6;
    let layer =
        AdaptiveLimitLayer::new(LimitConfig { start: MAX, max: MAX, ..LimitConfig::default() });
    let (inside, peak) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let (counted, highest) = (Arc::clone(&inside), Arc::clone(&peak));
    let service = layer.layer(service_fn(move |_: Request<()>| {
        let (inside, peak) = (Arc::clone(&counted), Arc::clone(&highest));
        async move {
            peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            inside.fetch_sub(1, Ordering::SeqCst);
            ok(Scripted::sized(&[]))
        }
    }));
    let callers: Vec<_> = (0..32)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move {
                for _ in 0..300 {
                    let response = service.clone().oneshot(Request::new(())).await;
                    drop(response.expect("no error"));
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("no panic");
    }
    assert!((1..=MAX).contains(&peak.load(Ordering::SeqCst)), "{peak:?}");
    assert_eq!(in_flight(&layer), 0);
}

#[tokio::test]
async fn being_ready_takes_no_slot() {
    let layer = layer(1);
    let mut idle = Vec::new();
    for _ in 0..10 {
        let mut service =
            layer.layer(service_fn(async |_: Request<()>| ok(Scripted::stream(&["a"]))));
        service.ready().await.expect("no error");
        idle.push(service);
    }
    assert_eq!(in_flight(&layer), 0);
    let unread = idle[0].call(Request::new(())).await.expect("no error");
    assert_eq!(unread.status(), StatusCode::OK);
    let refused = idle[1].call(Request::new(())).await.expect("no error");
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "services share the limit");
}

#[tokio::test]
async fn a_refusal_says_when_to_retry_and_does_not_reach_the_service() {
    let bounds = RetryBounds { min: Duration::from_secs(2), max: Duration::from_secs(3) };
    let layer = layer(1).retry_bounds(bounds);
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let service = layer.layer(service_fn(move |_: Request<()>| {
        counted.fetch_add(1, Ordering::SeqCst);
        ready(ok(Scripted::stream(&["a"])))
    }));
    let _unread = service.clone().oneshot(Request::new(())).await.expect("no error");
    let refused = service.oneshot(Request::new(())).await.expect("no error");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let number = |name: &str| -> u64 {
        let value = refused.headers().get(name).expect(name).to_str().expect("text");
        value.parse().expect("a number")
    };
    let wait_ms = number("retry-after-ms");
    assert!((2_000..=3_000).contains(&wait_ms), "{wait_ms}");
    assert_eq!(number(header::RETRY_AFTER.as_str()), wait_ms.div_ceil(1000));
    let snapshot = refused.extensions().get::<LimitSnapshot>().expect("the cause");
    assert_eq!((snapshot.limit, snapshot.in_flight), (1, 1));
    let body = refused.into_body().collect().await.expect("no error");
    assert!(body.to_bytes().is_empty());
}

#[tokio::test]
async fn a_slot_is_free_when_its_body_has_ended_or_is_dropped() {
    let layer = layer(1);
    let service = layer.layer(service_fn(async |_: Request<()>| ok(Scripted::stream(&["a"]))));
    let admitted = async || service.clone().oneshot(Request::new(())).await.expect("no error");
    let mut body = admitted().await.into_body();
    assert!(matches!(next_frame(&mut body).await, Some(Ok(_))));
    assert_eq!(in_flight(&layer), 1, "it may go on");
    assert!(next_frame(&mut body).await.is_none());
    assert_eq!(in_flight(&layer), 0, "before it is dropped");

    let response = admitted().await;
    assert_eq!((response.status(), in_flight(&layer)), (StatusCode::OK, 1));
    drop(response);
    assert_eq!(in_flight(&layer), 0);
    drop(body);
    assert_eq!(in_flight(&layer), 0, "once");
}

#[tokio::test]
async fn a_cancelled_future_and_every_error_free_their_slots() {
    let layer = layer(1);
    let never = service_fn(|_: Request<()>| pending::<Result<Response<Scripted>, Infallible>>());
    let mut service = layer.layer(never);
    let unpolled = service.ready().await.expect("no error").call(Request::new(()));
    assert_eq!(in_flight(&layer), 1, "taken in the call");
    drop(unpolled);
    assert_eq!(in_flight(&layer), 0);
    let cancelled =
        tokio::time::timeout(Duration::from_millis(1), service.oneshot(Request::new(())));
    assert!(cancelled.await.is_err());
    assert_eq!(in_flight(&layer), 0);

    fail(&layer).await;
    assert_eq!(in_flight(&layer), 0);
    let broken =
        layer.layer(service_fn(async |_: Request<()>| ok(Scripted::stream(&[]).then_error())));
    let mut body = broken.oneshot(Request::new(())).await.expect("no error").into_body();
    assert!(matches!(next_frame(&mut body).await, Some(Err("the body broke"))));
    assert_eq!(in_flight(&layer), 0);
}

#[tokio::test]
async fn a_panic_in_the_call_or_in_the_future_frees_its_slot() {
    type Never = Ready<Result<Response<Scripted>, Infallible>>;
    let layer = layer(1);
    let in_call = layer.layer(service_fn(|_: Request<()>| -> Never { panic!("expected") }));
    let call = async move { in_call.oneshot(Request::new(())).await.map(|_| ()) };
    assert!(tokio::spawn(call).await.expect_err("it panicked").is_panic());
    assert_eq!(in_flight(&layer), 0);

    let in_future =
        layer.layer(service_fn(async |_: Request<()>| -> Result<Response<Scripted>, Infallible> {
            panic!("expected")
        }));
    let panicked = tokio::spawn(in_future.oneshot(Request::new(()))).await;
    assert!(panicked.expect_err("it panicked").is_panic());
    assert_eq!(in_flight(&layer), 0);
    assert_eq!(respond(&layer, StatusCode::OK).await.status(), StatusCode::OK);
}

/// Sixteen streams hold the slots of a service that refuses the seventeenth.
#[tokio::test]
async fn refusals_set_the_limit_to_what_the_service_takes() {
    for status in [429_u16, 503, 529] {
        let layer = layer(32);
        let streams = layer.layer(service_fn(async |_: Request<()>| ok(Scripted::stream(&["a"]))));
        let mut unread = Vec::new();
        for _ in 0..16 {
            unread.push(streams.clone().oneshot(Request::new(())).await.expect("no error"));
        }
        let status = StatusCode::from_u16(status).expect("a status");
        for _ in 0..8 {
            assert_eq!(layer.snapshot().limit, 32);
            let refused = respond(&layer, status).await;
            assert!(refused.extensions().get::<LimitSnapshot>().is_none(), "by the service");
        }
        let snapshot = layer.snapshot();
        assert_eq!((snapshot.limit, snapshot.last_move), (16, LimitMove::Refused));
        let refused = respond(&layer, StatusCode::OK).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE, "by the layer");
    }
}

#[tokio::test]
async fn a_refusal_counts_also_if_nobody_reads_its_body() {
    let layer = layer(32);
    let service = layer.layer(service_fn(async |_: Request<()>| {
        let mut response = Response::new(Scripted::stream(&["busy"]));
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        Ok::<_, Infallible>(response)
    }));
    for _ in 0..8 {
        drop(service.clone().oneshot(Request::new(())).await);
    }
    assert_eq!(layer.snapshot().last_move, LimitMove::Refused);
}

#[tokio::test]
async fn failures_among_responses_halve_the_limit() {
    let layer = layer(16);
    for request in 0..48 {
        match request % 3 {
            0 => drop(respond(&layer, StatusCode::OK).await),
            _ => fail(&layer).await,
        }
        if layer.snapshot().limit != 16 {
            break;
        }
    }
    let snapshot = layer.snapshot();
    assert_eq!((snapshot.limit, snapshot.last_move), (8, LimitMove::Failures));
}

#[tokio::test]
async fn a_service_that_only_fails_is_probed_until_it_responds() {
    let layer = layer(16);
    for _ in 0..8 {
        fail(&layer).await;
    }
    assert!(layer.snapshot().open);
    let refused = respond(&layer, StatusCode::OK).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers().contains_key("retry-after-ms"));
    let since = Instant::now();
    while layer.snapshot().open && since.elapsed() < LONG {
        tokio::time::sleep(Duration::from_millis(5)).await;
        respond(&layer, StatusCode::OK).await;
    }
    let snapshot = layer.snapshot();
    assert_eq!((snapshot.open, snapshot.last_move), (false, LimitMove::BreakerClosed));
}

#[tokio::test]
async fn ends_that_say_nothing_about_the_service_move_nothing() {
    let layer = layer(4);
    let service = layer.layer(service_fn(async |_: Request<()>| ok(Scripted::stream(&["a"]))));
    for _ in 0..1_000 {
        drop(service.clone().oneshot(Request::new(())).await.expect("no error"));
    }
    let snapshot = layer.snapshot();
    assert_eq!((snapshot.limit, snapshot.last_move), (4, LimitMove::Start));
}

/// Calls a service from 64 tasks until the limit is as wanted; returns it, unless that takes too long.
async fn load_until<S, F>(
    layer: &AdaptiveLimitLayer,
    service: AdaptiveLimitService<S>,
    is_wanted: F,
) -> Option<LimitSnapshot>
where
    S: Service<Request<()>, Response = Response<Scripted>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    F: Fn(&LimitSnapshot) -> bool,
{
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..64 {
        let service = service.clone();
        tasks.spawn(async move {
            loop {
                let response = service.clone().oneshot(Request::new(())).await.expect("no error");
                if response.status() != StatusCode::OK {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                response.into_body().collect().await.expect("no error");
            }
        });
    }
    let since = Instant::now();
    let mut snapshot = layer.snapshot();
    while !is_wanted(&snapshot) && since.elapsed() < LONG {
        tokio::time::sleep(Duration::from_millis(1)).await;
        snapshot = layer.snapshot();
    }
    tasks.shutdown().await;
    Some(snapshot).filter(is_wanted)
}

#[tokio::test]
async fn the_limit_rises_while_a_fast_service_follows_it() {
    let layer = layer(2);
    let service = layer.layer(service_fn(async |_: Request<()>| {
        tokio::time::sleep(Duration::from_millis(5)).await;
        ok(Scripted::sized(&["done"]))
    }));
    let risen = load_until(&layer, service, |snapshot| snapshot.found >= 16).await;
    assert!(risen.is_some(), "{:?}", layer.snapshot());
    assert_eq!(in_flight(&layer), 0, "all callers are gone");
}

/// Four slots that are served in turn: beyond them, requests only become slower.
#[tokio::test]
async fn the_limit_falls_when_a_service_only_becomes_slower() {
    let layer = layer(4);
    let slots = Arc::new(tokio::sync::Semaphore::new(4));
    let service = layer.layer(service_fn(move |_: Request<()>| {
        let slots = Arc::clone(&slots);
        async move {
            let _slot = slots.acquire().await.expect("never closed");
            tokio::time::sleep(Duration::from_millis(5)).await;
            ok(Scripted::sized(&["done"]))
        }
    }));
    let is_lower = |snapshot: &LimitSnapshot| {
        matches!(snapshot.last_move, LimitMove::Lowered | LimitMove::Overload)
    };
    let lower = load_until(&layer, service, is_lower).await;
    assert!(lower.is_some_and(|snapshot| snapshot.found < 64), "{lower:?}");
}

/// Eight slots of 20 ms, and 800 requests a second that do not come again: twice the capacity. Without a queue the
/// slots are full for half of the time only.
#[tokio::test]
async fn a_limit_that_refuses_binds_also_while_its_slots_fill_again() {
    let layer = layer(8);
    let slots = Arc::new(tokio::sync::Semaphore::new(8));
    let service = layer.layer(service_fn(move |_: Request<()>| {
        let slots = Arc::clone(&slots);
        async move {
            let _slot = slots.acquire().await.expect("never closed");
            tokio::time::sleep(Duration::from_millis(20)).await;
            ok(Scripted::sized(&[]))
        }
    }));
    let (since, mut requests) = (Instant::now(), tokio::task::JoinSet::new());
    let mut moves = Vec::new();
    while since.elapsed() < Duration::from_millis(1_500) {
        while (requests.len() as f64) < since.elapsed().as_secs_f64() * 800.0 {
            requests.spawn(service.clone().oneshot(Request::new(())));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        let snapshot = layer.snapshot();
        if moves.last() != Some(&(snapshot.last_move, snapshot.found)) {
            moves.push((snapshot.last_move, snapshot.found));
        }
    }
    assert!(moves.iter().all(|(cause, _)| *cause != LimitMove::Calm), "{moves:?}");
    assert!(moves.iter().all(|(_, found)| *found <= 32), "{moves:?}");
}

#[test]
fn services_futures_and_bodies_can_cross_threads() {
    fn is_send<T: Send>() {}
    is_send::<AdaptiveLimitLayer>();
    is_send::<AdaptiveLimitService<()>>();
}
