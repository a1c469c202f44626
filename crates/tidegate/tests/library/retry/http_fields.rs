//! What the fields of an HTTP answer make a client do. Time is virtual, but a date is of the real clock.

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::retry::{
    Answered, BudgetLimits, Failure, RetryAfter, RetryClient, RetryPolicy, Safety, method_safety,
    server_said,
};
use tokio::time::Instant;
use tower::service_fn;

/// An answer with this status and these fields first, and 200 after it; how long the client took.
async fn refused_once(status: u16, fields: &[(&'static str, &str)]) -> Answered<Response<()>> {
    let first = fields.iter().fold(Response::builder().status(status), |answer, (name, value)| {
        answer.header(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a field"))
    });
    let first = Arc::new(Mutex::new(Some(first.body(()).expect("a response"))));
    let service = service_fn(move |_request: Request<()>| {
        let answer = first.lock().expect("no panic").take();
        async move { Ok::<_, Infallible>(answer.unwrap_or_default()) }
    });
    let policy = RetryPolicy { deadline: Duration::from_secs(600), ..RetryPolicy::default() };
    let client = RetryClient::new(policy, BudgetLimits::default());
    let sent = client.send(&service, Request::new(()), Safety::Once, |_| Failure::Lost);
    sent.await.expect("the second is answered")
}

#[tokio::test(start_paused = true)]
async fn refusals_are_tried_again_and_every_other_answer_is_one() {
    for (status, attempts) in
        [(429, 2), (503, 2), (529, 2), (200, 1), (404, 1), (500, 1), (502, 1), (504, 1)]
    {
        let answered = refused_once(status, &[]).await;
        assert_eq!(answered.attempts, attempts, "{status}");
        let expected = if attempts == 2 { 200 } else { status };
        assert_eq!(answered.value.status().as_u16(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn seconds_are_waited() {
    let answered = refused_once(503, &[("retry-after", "20")]).await;
    assert!((20.0..=31.0).contains(&answered.elapsed.as_secs_f64()), "{:?}", answered.elapsed);
}

#[tokio::test(start_paused = true)]
async fn milliseconds_are_preferred_to_the_seconds_they_were_rounded_to() {
    let fields = [("retry-after", "60"), ("retry-after-ms", "1500")];
    let answered = refused_once(529, &fields).await;
    assert!((1.5..=3.0).contains(&answered.elapsed.as_secs_f64()), "{:?}", answered.elapsed);
}

#[tokio::test(start_paused = true)]
async fn a_date_is_waited_for_by_the_clock_of_the_server() {
    // A server whose clock is decades behind: only the difference means something.
    let fields = [
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"),
    ];
    let answered = refused_once(503, &fields).await;
    assert!((30.0..=46.0).contains(&answered.elapsed.as_secs_f64()), "{:?}", answered.elapsed);
}

#[tokio::test(start_paused = true)]
async fn a_date_without_the_server_s_clock_is_waited_for_by_ours() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after the epoch");
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_static("Fri, 31 Dec 2100 23:59:59 GMT"));
    let Some(RetryAfter::Wait(wait)) = server_said(&headers, now) else { panic!("it is a date") };
    assert_eq!(wait, Duration::from_secs(4_133_980_799) - now);
    let past = [("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")];
    let answered = refused_once(503, &past).await;
    assert!(answered.elapsed <= Duration::from_millis(301), "{:?}", answered.elapsed);
}

#[tokio::test(start_paused = true)]
async fn garbage_is_as_good_as_no_word() {
    for garbage in ["", "soon", "-5", "1e9", "\u{ff11}", "Sun, 99 Nov 1994 08:49:37 GMT", "5, 6"] {
        let start = Instant::now();
        let fields = [("retry-after", garbage), ("retry-after-ms", garbage)];
        let answered = refused_once(503, &fields).await;
        assert_eq!(answered.value.status(), StatusCode::OK, "{garbage}");
        let took = start.elapsed();
        let usual = Duration::from_millis(100)..=Duration::from_millis(301);
        assert!(usual.contains(&took), "{garbage}: {took:?}");
    }
}

#[test]
fn methods_are_as_safe_as_the_standard_says() {
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS] {
        assert_eq!(method_safety(&method), Safety::Idempotent, "{method}");
    }
    for method in [Method::POST, Method::PATCH] {
        assert_eq!(method_safety(&method), Safety::Once, "{method}");
    }
}
