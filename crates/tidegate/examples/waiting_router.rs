//! Requests that wait for an upstream: served by priority, until a deadline.
//!
//! `cargo run -p tidegate --example waiting_router`

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate::MessagePriority::{self, High, Low, Normal};
use tidegate::limit::UpstreamOutcome;
use tidegate::routing::{Ask, MonitorConfig, Pick, PushRouter, UpstreamLimit, WorkerMonitor};

/// Waits for a slot for as long as `wait_max_ms`, and works for 50 ms.
async fn request(
    router: Arc<PushRouter>,
    served: Arc<Mutex<Vec<&'static str>>>,
    name: &'static str,
    priority: MessagePriority,
    wait_max_ms: u64,
) {
    let ask = Ask { priority, ..Ask::default() };
    match router.acquire(&ask, Duration::from_millis(wait_max_ms)).await {
        Ok(mut slot) => {
            let waited_ms = slot.waited().as_millis();
            println!("{name:<8} waited {waited_ms:>3} ms for {}", slot.upstream().name());
            served.lock().unwrap_or_else(PoisonError::into_inner).push(name);
            tokio::time::sleep(Duration::from_millis(50)).await;
            // A limit that is found learns from this; the slot goes to the next request when it is dropped.
            slot.set_outcome(UpstreamOutcome::Success);
        }
        Err(refused) => println!("{name:<8} is refused: {refused}"),
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    // One request at once; `UpstreamLimit::Auto` finds the number.
    let limit = UpstreamLimit::Fixed(1);
    let monitor = Arc::new(WorkerMonitor::new(MonitorConfig { limit, ..MonitorConfig::default() }));
    monitor.add_upstream("gpu-1:8000", None);
    let router = Arc::new(PushRouter::new(monitor, Pick::PowerOfTwo));

    let served = Arc::new(Mutex::new(Vec::new()));
    let mut requests = Vec::new();
    for (name, priority, wait_max_ms) in [
        ("first", Low, 1_000),
        ("report", Low, 1_000),
        ("hasty", Low, 10),
        ("page", Normal, 1_000),
        ("checkout", High, 1_000),
    ] {
        let (router, served) = (Arc::clone(&router), Arc::clone(&served));
        requests.push(tokio::spawn(request(router, served, name, priority, wait_max_ms)));
        // Each has taken its slot or its position before the next arrives.
        tokio::task::yield_now().await;
    }
    for request in requests {
        request.await?;
    }
    let served = served.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*served, ["first", "checkout", "page", "report"]);
    Ok(())
}
