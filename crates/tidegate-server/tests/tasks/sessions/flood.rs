use super::peer_worker::{PeerWorker, progress_of};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidegate::frame::FrameKind;
use tidegate::signal::BackpressureLevel::Reject;
use tidegate_server::tasks::session::{BufferMetrics, UpdateAck, UpdateBatch, WorkerState, encode};
use tokio::task::JoinSet;

/// Workers that send as fast as the manager reads, and follow no signal.
pub struct Flood {
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    workers: JoinSet<()>,
}

/// Frames of a worker of a flood, sent again and again.
#[derive(Clone, Copy)]
pub struct FloodFrames {
    /// Batches of progress.
    pub batches: usize,
    /// Updates of each, each of another execution.
    pub updates: usize,
    /// Frames of metrics for debugging after each batch.
    pub debugs: usize,
}

/// Frames of each worker of a flood.
pub struct EncodedFrames {
    rounds: Vec<Arc<[u8]>>,
    updates: u64,
}

#[derive(Default)]
struct Counts {
    updates: AtomicU64,
    acks: AtomicU64,
    rejects: AtomicU64,
}

// === impl Flood ===

impl Flood {
    /// Starts a worker for each of these frames on the current runtime, and waits until all have joined.
    pub async fn start(manager: SocketAddr, frames: &EncodedFrames) -> Self {
        let (stop, counts) = (Arc::new(AtomicBool::new(false)), Arc::new(Counts::default()));
        let mut flood = Self { stop, counts, workers: JoinSet::new() };
        let mut peers = Vec::new();
        for nth in 0..frames.rounds.len() {
            peers.push(PeerWorker::join(manager, &format!("flood{nth}"), 1, 0).await);
        }
        for (peer, round) in peers.into_iter().zip(&frames.rounds) {
            let (stop, counts) = (Arc::clone(&flood.stop), Arc::clone(&flood.counts));
            flood.workers.spawn(send(peer, Arc::clone(round), frames.updates, stop, counts));
        }
        flood
    }

    /// Updates that were sent.
    pub fn updates(&self) -> u64 {
        self.counts.updates.load(Ordering::SeqCst)
    }

    /// Acknowledgements, and those that said REJECT.
    pub fn acks(&self) -> [u64; 2] {
        [&self.counts.acks, &self.counts.rejects].map(|count| count.load(Ordering::SeqCst))
    }

    /// Ends it.
    pub async fn stop(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        while self.workers.join_next().await.is_some() {}
    }
}

// === impl FloodFrames ===

impl FloodFrames {
    /// The frames of so many workers. Takes a while: before anything joins, as no session outlasts much silence.
    pub fn of_workers(self, workers: usize) -> EncodedFrames {
        let updates = self.batches * self.updates;
        let rounds = (0..workers).map(|nth| self.encoded(nth * updates).into());
        EncodedFrames { rounds: rounds.collect(), updates: updates as u64 }
    }

    fn encoded(self, first: usize) -> Vec<u8> {
        let mut round = Vec::new();
        for nth in 0..self.batches {
            let updates = progress_of(first + nth * self.updates, self.updates);
            let batch = UpdateBatch { seq: nth as u64 + 1, merged: true, updates };
            encode(&mut round, FrameKind::Progress, &batch).unwrap();
            for _ in 0..self.debugs {
                encode(&mut round, FrameKind::Debug, &BufferMetrics::default()).unwrap();
            }
        }
        round
    }
}

async fn send(
    peer: PeerWorker,
    round: Arc<[u8]>,
    updates: u64,
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
) {
    let PeerWorker { mut control_in, mut control_out, mut data_in, mut data_out, .. } = peer;
    let mut others = JoinSet::new();
    let acks = Arc::clone(&counts);
    others.spawn(async move {
        while let Ok(ack) = data_in.next_of::<UpdateAck>(FrameKind::ProgressAck).await {
            acks.acks.fetch_add(1, Ordering::SeqCst);
            acks.rejects.fetch_add(u64::from(ack.signal.level == Reject), Ordering::SeqCst);
        }
    });
    others.spawn(async move {
        while control_in.next().await.is_ok() {
            let state = WorkerState::default();
            if control_out.send(FrameKind::State, &state).await.is_err() {
                return;
            }
        }
    });
    while !stop.load(Ordering::SeqCst) && data_out.write(&round).await.is_ok() {
        counts.updates.fetch_add(updates, Ordering::SeqCst);
        tokio::task::yield_now().await;
    }
}
