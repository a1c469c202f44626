use super::record;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tidegate::client::{ClientConfig, IngestClient};
use tidegate::retry::Decorrelated;
use tokio::task::JoinHandle;

/// The library's own client, sending as fast as it is let, until it is told to stop.
pub struct Load {
    stop: Arc<AtomicBool>,
    sending: Vec<JoinHandle<u64>>,
    sent: Arc<AtomicU64>,
}

impl Load {
    /// One client for each of these tenants, all of whose records are of 1.
    pub fn start(address: SocketAddr, tenants: &[&str]) -> Self {
        let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let sending = tenants.iter().map(|tenant| {
            let client = client(address, tenant);
            let (tenant, stop, sent) = ((*tenant).to_owned(), Arc::clone(&stop), Arc::clone(&sent));
            tokio::spawn(async move {
                let records = vec![record(&tenant, 1); 200];
                while !stop.load(Ordering::Relaxed) {
                    client.send_batch(&records).await.unwrap();
                    sent.fetch_add(200, Ordering::Relaxed);
                }
                client.flush().await.unwrap();
                let stats = client.stats();
                assert_eq!((stats.records_acked, stats.records_rejected), (stats.records_taken, 0));
                stats.records_taken
            })
        });
        let sending = sending.collect();
        Self { stop, sending, sent }
    }

    /// Records that clients took so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Ends it once everything is acknowledged; how many records each client sent.
    pub async fn finish(self) -> Vec<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let mut sent = Vec::new();
        for task in self.sending {
            sent.push(task.await.unwrap());
        }
        sent
    }
}

fn client(address: SocketAddr, name: &str) -> IngestClient {
    let mut config = ClientConfig::new(name.parse().unwrap());
    config.buffer_records = 20_000;
    config.in_flight_max = 256;
    config.backoff =
        Decorrelated { base: Duration::from_millis(20), cap: Duration::from_millis(200) };
    IngestClient::connect(address.to_string(), config).unwrap().0
}
