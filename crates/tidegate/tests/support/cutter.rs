//! Somebody who cuts connections to a database, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_postgres::Client;

/// So often it cuts before it waits for what is cut to get something done: a slow machine must not be cut for ever
/// before it can connect.
const IN_A_ROW_MAX: u64 = 3;

/// How long it looks away when it has nothing to do.
const IDLE: Duration = Duration::from_millis(1);

/// Cuts the connections of one application until it is stopped.
pub struct Cutter {
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    done: AtomicBool,
    progress: AtomicU64,
    cuts: AtomicU64,
    stopped: Notify,
}

// === impl Cutter ===

impl Cutter {
    /// Pauses after each cut as long as the number of cuts says.
    pub fn start(
        client: Client,
        application: &'static str,
        pause: impl Fn(u64) -> Duration + Send + 'static,
    ) -> Self {
        let state = Arc::new(State::default());
        tokio::spawn(cut(client, application, pause, Arc::clone(&state)));
        Self { state }
    }

    /// Whoever is cut got something done.
    pub fn progress(&self) {
        self.state.progress.fetch_add(1, Ordering::Relaxed);
    }

    pub fn cuts(&self) -> u64 {
        self.state.cuts.load(Ordering::Relaxed)
    }

    /// Cuts no more, from when this returns.
    pub async fn stop(&self) {
        self.state.done.store(true, Ordering::Relaxed);
        self.state.stopped.notified().await;
    }
}

async fn cut(
    client: Client,
    application: &str,
    pause: impl Fn(u64) -> Duration,
    state: Arc<State>,
) {
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    let (mut in_a_row, mut seen) = (0, 0);
    while !state.done.load(Ordering::Relaxed) {
        let progress = state.progress.load(Ordering::Relaxed);
        if progress > seen {
            (in_a_row, seen) = (0, progress);
        }
        if in_a_row == IN_A_ROW_MAX {
            tokio::time::sleep(IDLE).await;
            continue;
        }
        let count = client.execute(cut, &[&application]).await.unwrap();
        in_a_row += u64::from(count > 0);
        let cuts = state.cuts.fetch_add(count, Ordering::Relaxed) + count;
        tokio::time::sleep(pause(cuts)).await;
    }
    state.stopped.notify_one();
}
