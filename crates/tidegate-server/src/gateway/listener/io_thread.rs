use super::connection::{Accepted, serve_client};
use super::reaper::ConnectionReaper;
use crate::config::Config;
use crate::gateway::activity::Activity;
use crate::gateway::buffer::{BufferBudget, ResponseBuffer};
use crate::gateway::proxy::ThreadProxy;
use crate::gateway::telemetry::IoThreads;
use crate::http::Phase;
use crate::http::tls::TlsPort;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, sleep_until};

/// One serving thread: its clients, and who looks after them.
pub struct IoThread {
    index: usize,
    proxy: Arc<ThreadProxy>,
    threads: Arc<IoThreads>,
    shutdown_grace: Duration,
    tls: Option<Arc<TlsPort>>,
    reaper: ConnectionReaper,
    clients: JoinSet<()>,
}

// === impl IoThread ===

impl IoThread {
    pub fn new(
        index: usize,
        proxy: ThreadProxy,
        config: &Config,
        threads: Arc<IoThreads>,
        tls: Option<Arc<TlsPort>>,
    ) -> Self {
        Self {
            index,
            proxy: Arc::new(proxy),
            threads,
            shutdown_grace: config.listen.shutdown_grace,
            tls,
            reaper: ConnectionReaper::new(config),
            clients: JoinSet::new(),
        }
    }

    /// Serves the connections that are handed over until the gateway drains, and then what is left of them
    /// for as long as the grace time allows. Answers how many had to be cut.
    pub async fn serve(
        mut self,
        mut inbox: mpsc::Receiver<Accepted>,
        mut phase: watch::Receiver<Phase>,
    ) -> usize {
        let mut ticks = interval(self.reaper.period());
        let buffers = Arc::clone(self.threads.buffers());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                Some(accepted) = inbox.recv() => self.take(accepted),
                Some(ended) = self.clients.join_next() => note_end(ended),
                _ = ticks.tick() => self.look_around(),
                () = buffers.exceeded(self.index) => self.reaper.keep_budget(&buffers),
                _ = phase.wait_for(|phase| *phase == Phase::Draining) => break,
            }
        }
        self.drain(inbox, ticks, &buffers).await
    }

    async fn drain(
        mut self,
        mut inbox: mpsc::Receiver<Accepted>,
        mut ticks: Interval,
        buffers: &BufferBudget,
    ) -> usize {
        let deadline = Instant::now() + self.shutdown_grace;
        self.reaper.drain();
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
                () = buffers.exceeded(self.index) => self.reaper.keep_budget(buffers),
                () = sleep_until(deadline) => return self.clients.len(),
            }
        }
    }

    fn look_around(&mut self) {
        self.threads.record_alive(self.index);
        self.proxy.sweep_idle();
        self.proxy.refresh_date(SystemTime::now());
        self.reaper.pass();
        self.reaper.keep_budget(self.threads.buffers());
    }

    fn take(&mut self, accepted: Accepted) {
        let budget = Arc::clone(self.threads.buffers());
        let buffer = ResponseBuffer::of_connection(budget, self.index);
        let activity = Arc::new(Activity::new(buffer));
        self.reaper.take(&activity);
        let client = serve_client(Arc::clone(&self.proxy), accepted, activity, self.tls.clone());
        self.clients.spawn(client);
    }
}

/// A connection's task panics only by a defect of ours; it takes its own connection with it and no other.
fn note_end(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection's task ended by a defect");
    }
}
