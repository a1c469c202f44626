use super::connection::{Accepted, serve_client};
use super::{Phase, ThreadContext};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_rustls::TlsAcceptor;

/// How often a thread shows that it is alive and closes idle connections to upstreams.
const TICK: Duration = Duration::from_secs(1);

/// Serves the connections that are handed over until the gateway drains, and then what is left of them for
/// as long as the grace time allows. Answers how many had to be cut.
pub async fn serve_forever(
    index: usize,
    thread: Arc<ThreadContext>,
    mut inbox: mpsc::Receiver<Accepted>,
    tls: Option<TlsAcceptor>,
) -> usize {
    let mut phase = thread.shared.phase.clone();
    let mut clients = JoinSet::new();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            Some(accepted) = inbox.recv() => {
                clients.spawn(serve_client(Arc::clone(&thread), accepted, tls.clone()));
            }
            Some(ended) = clients.join_next() => note_end(ended),
            _ = ticks.tick() => {
                thread.shared.saw(index);
                thread.pool.sweep();
            }
            _ = phase.wait_for(|phase| *phase == Phase::Draining) => break,
        }
    }
    drain(&thread, clients).await
}

async fn drain(thread: &ThreadContext, mut clients: JoinSet<()>) -> usize {
    let deadline = Instant::now() + thread.shared.config.listen.shutdown_grace;
    loop {
        tokio::select! {
            ended = clients.join_next() => match ended {
                Some(ended) => note_end(ended),
                None => return 0,
            },
            () = sleep_until(deadline) => return clients.len(),
        }
    }
}

/// A connection's task panics only by a defect of ours; it takes its own connection with it and no other.
fn note_end(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task ended by a defect");
    }
}
