//! An axum service that is held to a limit that finds itself: nothing is configured.
//!
//! `cargo run -p tidegate --example adaptive_limit_layer`

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::routing::get;
use http_body_util::BodyExt;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate::layer::AdaptiveLimitLayer;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower::ServiceExt;

/// Twice of what the database can do: 16 connections and 20 ms a query are 800 a second.
const REQUESTS_PER_S: f64 = 1_600.0;
const RUN: Duration = Duration::from_millis(1_500);

/// More queries at once than connections only wait for each other.
async fn query(State(connections): State<Arc<Semaphore>>) -> &'static str {
    let _connection = connections.acquire().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    "done\n"
}

/// Sends one request; returns its latency, or the wait that it is advised when it is refused.
async fn ask(app: Router) -> Result<Duration, String> {
    let since = Instant::now();
    let request = Request::get("/query").body(Body::empty()).map_err(|error| error.to_string())?;
    let Ok(response) = app.oneshot(request).await;
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        let retry_after = response.headers().get(header::RETRY_AFTER);
        return Err(format!("retry after {:?} s", retry_after.ok_or("an unknown number of")?));
    }
    // The slot is free when the body has ended.
    response.into_body().collect().await.map_err(|error| error.to_string())?;
    Ok(since.elapsed())
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let layer = AdaptiveLimitLayer::default();
    let app = Router::new()
        .route("/query", get(query))
        .with_state(Arc::new(Semaphore::new(16)))
        .layer(layer.clone());

    let mut requests = JoinSet::new();
    let since = Instant::now();
    let mut found = layer.snapshot().found;
    println!("   0 ms: limit {found}");
    while since.elapsed() < RUN {
        while (requests.len() as f64) < since.elapsed().as_secs_f64() * REQUESTS_PER_S {
            requests.spawn(ask(app.clone()));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        let snapshot = layer.snapshot();
        if snapshot.found != found {
            found = snapshot.found;
            let ms = since.elapsed().as_millis();
            println!("{ms:>4} ms: limit {found:<3} {}", snapshot.last_move);
        }
    }
    let (mut latencies, mut refusals) = (Vec::new(), Vec::new());
    for response in requests.join_all().await {
        match response {
            Ok(latency) => latencies.push(latency),
            Err(refusal) => refusals.push(refusal),
        }
    }
    latencies.sort();
    println!(
        "{} answered, half of them within {:?}",
        latencies.len(),
        latencies[latencies.len() / 2]
    );
    println!("{} refused, the last one with: {}", refusals.len(), refusals.last().ok_or("none")?);
    assert_eq!(layer.snapshot().in_flight, 0);
    Ok(())
}
