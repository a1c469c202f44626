//! Measures of the process under attack: the gateway runs in it, beside clients and upstreams that hold little.

use crate::support::{Client, TestGateway};
use std::fs;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, MutexGuard};

static ALONE: Mutex<()> = Mutex::const_new(());

/// Waits until no other attack runs: the measures are of the whole process.
pub async fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().await
}

/// Resident memory in KiB.
pub fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Open file descriptors.
pub fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The slowest of 20 health checks on the data port, one after the other, without a retry.
pub async fn slowest_check(gateway: &TestGateway) -> Duration {
    let mut slowest = Duration::ZERO;
    for client in [Client::new(gateway.address), Client::h2(gateway.address)].repeat(10) {
        let start = Instant::now();
        assert_eq!(client.get("/health/live").await.status, 200);
        slowest = slowest.max(start.elapsed());
    }
    slowest
}
