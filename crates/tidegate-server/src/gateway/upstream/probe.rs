use super::{Fleet, Upstream};
use crate::http::client::Connector;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// Connects to every upstream once an interval, for ever, and records whether it could.
///
/// This is what brings back an upstream that a failed request has marked as down, and what makes readiness
/// true to life before the first request has come.
pub async fn probe_forever(fleet: Arc<Fleet>, connector: Connector, every: Duration) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let mut probes: JoinSet<()> = fleet
            .all()
            .iter()
            .map(|upstream| probe(Arc::clone(upstream), connector.clone()))
            .collect();
        while probes.join_next().await.is_some() {}
    }
}

async fn probe(upstream: Arc<Upstream>, connector: Connector) {
    upstream.note(connector.reach(upstream.endpoint()).await.err().as_ref());
}
