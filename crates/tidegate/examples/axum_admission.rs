//! An axum server that sheds by priority, with an honest Retry-After.
//!
//! `cargo run -p tidegate --example axum_admission`, then send it more than its two places for Low can do:
//!
//! ```text
//! for i in 1 2 3 4 5; do curl -si -H 'x-priority: low' localhost:3000/work & done; wait
//! curl -s localhost:3000/stats
//! ```

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate::admission::{RetryAdvisor, RetryBounds};
use tidegate::layer::AdmissionLayer;
use tidegate::{InFlightTracker, MessageKind, MessagePriority, PriorityLimits, Refusal, Sharing};
use tokio::time::{Instant, interval, sleep};

type Advisor = Arc<Mutex<RetryAdvisor>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let limits = PriorityLimits::new(10, 5, 3, 2);
    let tracker = Arc::new(InFlightTracker::new(limits, Sharing::Strict));
    let advisor = Arc::new(Mutex::new(RetryAdvisor::new(RetryBounds::default())));
    tokio::spawn(observe(Arc::clone(&tracker), Arc::clone(&advisor)));

    let app = Router::new()
        .route("/work", get(work))
        .route("/stats", get(stats))
        .with_state(Arc::clone(&tracker))
        .layer(AdmissionLayer::new(tracker, classify, move |refusal| refuse(&advisor, refusal)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app).await
}

/// From the head alone. A client may claim High at most: Critical is the operator's.
fn classify(request: &Request) -> MessagePriority {
    if request.uri().path() == "/stats" {
        return MessageKind::StatsRead.class().priority();
    }
    let claimed = request.headers().get("x-priority").and_then(|value| value.to_str().ok());
    claimed
        .and_then(MessagePriority::from_name)
        .unwrap_or(MessagePriority::Normal)
        .capped_at(MessagePriority::High)
}

fn refuse(advisor: &Advisor, refusal: Refusal) -> Response {
    let wait = advisor.lock().unwrap_or_else(PoisonError::into_inner).advise(refusal);
    // Whole seconds, rounded up: sooner than advised would be in vain.
    let seconds = wait.as_millis().div_ceil(1000) as u64;
    let mut response = (StatusCode::SERVICE_UNAVAILABLE, format!("{refusal}\n")).into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

async fn observe(tracker: Arc<InFlightTracker>, advisor: Advisor) {
    let start = Instant::now();
    let mut ticks = interval(Duration::from_millis(100));
    loop {
        let now = ticks.tick().await;
        let stats = tracker.stats();
        let mut advisor = advisor.lock().unwrap_or_else(PoisonError::into_inner);
        advisor.observe(now.saturating_duration_since(start), &stats);
    }
}

async fn work() -> &'static str {
    sleep(Duration::from_secs(1)).await;
    "done\n"
}

async fn stats(State(tracker): State<Arc<InFlightTracker>>) -> Body {
    Body::from(format!("{}: {:#?}\n", tracker.load_state(), tracker.stats()))
}
