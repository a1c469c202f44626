use super::{Fleet, Upstream};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// Connects to every upstream once an interval, for ever, and records whether it could.
///
/// This is what brings back an upstream that a failed request has marked as down, and what makes readiness
/// true to life before the first request has come.
pub async fn probe_forever(fleet: Arc<Fleet>, every: Duration, connect_timeout: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let probes =
            fleet.all().iter().map(|upstream| probe(Arc::clone(upstream), connect_timeout));
        let mut running: tokio::task::JoinSet<()> = probes.collect();
        while running.join_next().await.is_some() {}
    }
}

async fn probe(upstream: Arc<Upstream>, connect_timeout: Duration) {
    let connect = TcpStream::connect((upstream.host.as_str(), upstream.port));
    let up = matches!(timeout(connect_timeout, connect).await, Ok(Ok(_)));
    if upstream.set_up(up) {
        if up {
            tracing::info!(upstream = %upstream.name, "upstream is up");
        } else {
            tracing::warn!(upstream = %upstream.name, "upstream is down: no connection");
        }
    }
}
