use crate::http::Client;
use crate::shared::folder::TempFolder;
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate::store::{Store as _, UsageBy, UsageQuery, UsageRow};
use tidegate_server::config::{Config, IngestConfig};
use tidegate_server::ingest::{Flushed, IngestNode, IngestStats};

/// A node on free loopback ports with a folder of its own, that ends with its test.
pub struct TestIngest {
    node: IngestNode,
    pub frames: SocketAddr,
    pub lines: SocketAddr,
    pub admin: SocketAddr,
    config: Config,
    folder: TempFolder,
}

impl TestIngest {
    pub fn start() -> Self {
        Self::start_with(|_config| {})
    }

    pub fn start_with(change: impl FnOnce(&mut IngestConfig)) -> Self {
        Self::start_as("", change)
    }

    /// One with this configuration, such as its clients.
    pub fn start_as(toml: &str, change: impl FnOnce(&mut IngestConfig)) -> Self {
        let folder = TempFolder::new("ingest");
        let mut config = Config::from_toml(toml).unwrap_or_else(|errors| panic!("{errors}"));
        let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
        config.listen.admin_address = free;
        config.ingest.frames_address = free;
        config.ingest.lines_address = free;
        config.ingest.store = folder.path().join("store").to_str().unwrap().to_owned();
        change(&mut config.ingest);
        Self::again(config, folder)
    }

    fn again(config: Config, folder: TempFolder) -> Self {
        let node = IngestNode::start(&config).unwrap();
        let (frames, lines) = (node.view().frames_address(), node.view().lines_address());
        let admin = node.admin_address();
        Self { node, frames, lines, admin, config, folder }
    }

    pub fn stats(&self) -> IngestStats {
        self.node.view().stats()
    }

    /// How often something was refused for this reason, by either protocol.
    pub fn rejected(&self, reason: &str) -> u64 {
        let rejected = self.stats().counts.rejected;
        rejected.iter().filter(|row| row.reason == reason).map(|row| row.count).sum()
    }

    pub fn connections(&self) -> usize {
        let stats = self.stats();
        stats.connections_frames + stats.connections_lines
    }

    /// All that is stored, by tenant and meter.
    pub async fn usage(&self) -> Vec<UsageRow> {
        let all = UsageQuery::new(UsageBy::Both, i64::MIN / 2, i64::MAX / 2);
        self.node.view().store().usage(&all).await.unwrap()
    }

    /// How many records are stored of a tenant.
    pub async fn stored(&self, tenant: &str) -> u64 {
        let rows = self.usage().await;
        let of = |row: &&UsageRow| row.tenant.as_deref() == Some(tenant);
        rows.iter().filter(of).map(|row| row.records).sum()
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        let answer = Client::new(self.admin).get(path).await;
        (answer.status.as_u16(), answer.json())
    }

    pub async fn shutdown(self, grace: Duration) -> (Flushed, TempFolder) {
        let Self { node, folder, .. } = self;
        let flushed = tokio::task::spawn_blocking(move || node.shutdown(grace)).await.unwrap();
        (flushed, folder)
    }

    /// Ends it and starts it again with the same store, on other ports.
    pub async fn restart(self) -> Self {
        let config = self.config.clone();
        let (flushed, folder) = self.shutdown(Duration::from_secs(30)).await;
        assert_eq!(flushed, Flushed::All);
        Self::again(config, folder)
    }
}
