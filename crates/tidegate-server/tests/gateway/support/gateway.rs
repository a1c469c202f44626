use super::Client;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tidegate_server::config::{Config, LimitSetting, LoadSource};
use tidegate_server::gateway::{Drained, Gateway};

/// A gateway on free loopback ports that ends with its test.
pub struct TestGateway {
    gateway: Option<Gateway>,
    pub address: SocketAddr,
    pub admin: SocketAddr,
}

impl TestGateway {
    /// Starts one with this configuration in front of these upstreams.
    pub fn start(toml: &str, upstreams: &[SocketAddr]) -> Self {
        let mut text = toml.to_owned();
        for address in upstreams {
            text.push_str(&format!("\n[[upstream]]\nurl = \"http://{address}\"\n"));
        }
        let mut config = Config::from_toml(&text).unwrap_or_else(|errors| panic!("{errors}"));
        // Upstreams that count what they see are not asked for anything else, unless a test says so.
        if !toml.contains("scrape") {
            config.routing.load_source = LoadSource::Headers;
        }
        // Nor are they held to a limit that is found, unless a test says so: many hold all that is sent to them.
        if !toml.lines().any(|line| line.trim_start().starts_with("limit =")) {
            config.routing.limit = LimitSetting::Off;
        }
        Self::start_with(config)
    }

    pub fn start_with(mut config: Config) -> Self {
        config.listen.address = "127.0.0.1:0".parse().unwrap();
        config.listen.admin_address = "127.0.0.1:0".parse().unwrap();
        let gateway = Gateway::start(config).unwrap();
        let (address, admin) = (gateway.address(), gateway.admin_address());
        Self { gateway: Some(gateway), address, admin }
    }

    pub fn inner(&self) -> &Gateway {
        self.gateway.as_ref().unwrap()
    }

    /// All that is in flight now, of every priority but Critical.
    pub fn in_flight(&self) -> u64 {
        let stats = self.inner().admission().tracker().stats();
        stats.high_in_flight + stats.normal_in_flight + stats.low_in_flight
    }

    /// The snapshots, by the admin port.
    pub async fn stats(&self) -> Value {
        Client::new(self.admin).get("/v1/stats").await.json()
    }

    /// Everything that was admitted has ended: no permit and no upstream's place is held.
    pub async fn balances(&self) {
        eventually("every permit has ended", || self.in_flight() == 0).await;
        let fleet = self.inner().fleet();
        eventually("no upstream is held", || fleet.stats().iter().all(|u| u.in_flight == 0)).await;
    }

    pub async fn shutdown(mut self) -> Drained {
        let gateway = self.gateway.take().unwrap();
        tokio::task::spawn_blocking(|| gateway.shutdown()).await.unwrap()
    }
}

/// Waits until something holds. The bound only ends a test that has failed; none is judged by it.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Tries until a try was not spoiled by the machine, which it tells by `None`: what is promised to who is in time
/// can't be judged by who was not. A try that was in time and still fails has to panic by itself.
pub async fn undisturbed<T>(what: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(done) = attempt().await {
            return done;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "always disturbed: {what}");
    }
}
