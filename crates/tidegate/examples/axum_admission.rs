//! An axum server that sheds by priority, with a measured Retry-After, and six clients of its own.
//!
//! `cargo run -p tidegate --example axum_admission`

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate::layer::AdmissionLayer;
use tidegate::{InFlightTracker, MessagePriority, PriorityLimits, Refusal, Sharing};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Decides from the head alone. A client may claim High at most: Critical is for operators.
fn classify(request: &Request) -> MessagePriority {
    let claimed = request.headers().get("x-priority").and_then(|value| value.to_str().ok());
    claimed
        .and_then(MessagePriority::from_name)
        .unwrap_or(MessagePriority::Normal)
        .capped_at(MessagePriority::High)
}

/// Chooses status and body; the layer adds the Retry-After.
fn refuse(refusal: Refusal) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{refusal}\n")).into_response()
}

async fn work() -> &'static str {
    tokio::time::sleep(Duration::from_secs(1)).await;
    "done\n"
}

/// Returns status line, Retry-After and body of one request.
async fn ask(server: SocketAddr, priority: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(server).await?;
    let head = format!("GET /work HTTP/1.0\r\nhost: localhost\r\nx-priority: {priority}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let shown = |line: &&str| {
        !line.is_empty()
            && !["content", "date", "connection"].iter().any(|name| line.starts_with(name))
    };
    Ok(answer.lines().filter(shown).collect::<Vec<_>>().join(" | "))
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    // At most ten at once: five High, three Normal, two Low.
    let limits = PriorityLimits::new(10, 5, 3, 2);
    let tracker = Arc::new(InFlightTracker::new(limits, Sharing::Strict));
    let layer = AdmissionLayer::new(Arc::clone(&tracker), classify, refuse);
    let app = Router::new().route("/work", get(work)).layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, app).await });

    let priorities = ["low", "low", "low", "low", "normal", "high"];
    let clients = priorities.map(|priority| {
        tokio::spawn(async move { ask(address, priority).await.map(|answer| (priority, answer)) })
    });
    for client in clients {
        let (priority, answer) = client.await??;
        println!("{priority:<7} {answer}");
    }
    let stats = tracker.stats();
    println!("low: {} admitted, {} shed", stats.low_acquired, stats.low_shed);
    assert_eq!((stats.low_acquired, stats.low_shed, stats.high_shed), (2, 2, 0));
    Ok(())
}
