use super::activity::Activity;
use super::connection::{Accepted, serve_client};
use super::shared::{Phase, ThreadContext};
use super::warden::Warden;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};
use tokio_rustls::TlsAcceptor;

/// One serving thread: its clients, and who looks after them.
pub struct Worker {
    index: usize,
    thread: Arc<ThreadContext>,
    tls: Option<TlsAcceptor>,
    warden: Warden,
    clients: JoinSet<()>,
}

// === impl Worker ===

impl Worker {
    pub fn new(index: usize, thread: Arc<ThreadContext>, tls: Option<TlsAcceptor>) -> Self {
        let warden = Warden::new(&thread.shared.config);
        Self { index, thread, tls, warden, clients: JoinSet::new() }
    }

    /// Serves the connections that are handed over until the gateway drains, and then what is left of them
    /// for as long as the grace time allows. Answers how many had to be cut.
    pub async fn serve(mut self, mut inbox: mpsc::Receiver<Accepted>) -> usize {
        let mut phase = self.thread.shared.phase.clone();
        let mut ticks = interval(self.warden.period());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(accepted) = inbox.recv() => self.take(accepted),
                Some(ended) = self.clients.join_next() => note_end(ended),
                _ = ticks.tick() => self.look_around(),
                _ = phase.wait_for(|phase| *phase == Phase::Draining) => break,
            }
        }
        self.drain(inbox, ticks).await
    }

    async fn drain(mut self, mut inbox: mpsc::Receiver<Accepted>, mut ticks: Interval) -> usize {
        let deadline = Instant::now() + self.thread.shared.config.listen.shutdown_grace;
        self.warden.drain();
        // What was handed over just before the end is served too; no more can come once this is empty.
        inbox.close();
        while let Some(accepted) = inbox.recv().await {
            self.take(accepted);
        }
        loop {
            tokio::select! {
                ended = self.clients.join_next() => match ended {
                    Some(ended) => note_end(ended),
                    None => return 0,
                },
                _ = ticks.tick() => self.look_around(),
                () = sleep_until(deadline) => return self.clients.len(),
            }
        }
    }

    fn look_around(&mut self) {
        self.thread.shared.saw(self.index);
        self.thread.pool.sweep();
        self.warden.pass();
    }

    fn take(&mut self, accepted: Accepted) {
        let activity = Arc::new(Activity::new());
        self.warden.take(&activity);
        let client = serve_client(Arc::clone(&self.thread), accepted, activity, self.tls.clone());
        self.clients.spawn(client);
    }
}

/// A connection's task panics only by a defect of ours; it takes its own connection with it and no other.
fn note_end(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task ended by a defect");
    }
}
