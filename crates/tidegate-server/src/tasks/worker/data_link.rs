use super::pages::pages;
use super::shared::Shared;
use crate::tasks::session::{FrameWriter, SessionError, UpdateAck, UpdateBatch, encode};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate::Role;
use tidegate::frame::FrameKind;
use tidegate::outbox::{
    Delivery, Failure, OutgoingConfig, QueueConfig, Safety, Transport, Undelivered,
};
use tidegate::signal::BackpressureLevel;
use tidegate::task::ExecutionKey;
use tokio::sync::{Mutex, watch};

/// Messages of one batch.
const BATCH_MAX: usize = 64;
/// Most output of one frame, in bytes: a quarter of the longest frame.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Longest wait for the acknowledgement of a batch.
const ACK_TIMEOUT: Duration = Duration::from_secs(10);

/// Message to a manager. It names its content, which is read when it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    /// Newest state, output and progress of an execution.
    Update(ExecutionKey),
    /// Statistics of the worker.
    Stats,
    /// Metrics of the worker's buffers.
    Debug,
}

/// Data connection of the session, while there is one.
#[derive(Default)]
pub(super) struct DataLink {
    connection: Mutex<Option<Connection>>,
    acked: watch::Sender<Acked>,
}

struct Connection {
    writer: FrameWriter,
    session: u64,
    seq: u64,
}

/// Last acknowledgement.
#[derive(Clone, Default)]
struct Acked {
    session: u64,
    seq: u64,
    refused: u32,
    closed: bool,
}

/// Sends batches of updates by the data connection.
pub(super) struct DataTransport {
    /// Weak, because the worker owns the outbox.
    pub(super) shared: Weak<Shared>,
}

/// Frames of a batch, and the output that the manager has after them.
struct Encoded {
    frames: Vec<u8>,
    positions: Vec<(ExecutionKey, u64)>,
    /// Batches of updates in the frames.
    batches: u64,
}

// === impl DataLink ===

impl DataLink {
    /// Uses this connection from now on.
    pub(super) async fn attach(&self, session: u64, writer: FrameWriter) {
        *self.connection.lock().await = Some(Connection { writer, session, seq: 0 });
        self.acked.send_replace(Acked { session, ..Acked::default() });
    }

    /// The session has ended: what is being sent fails.
    pub(super) async fn detach(&self) {
        self.acked.send_modify(|acked| acked.closed = true);
        *self.connection.lock().await = None;
    }

    /// Takes in an acknowledgement.
    pub(super) fn acked(&self, ack: &UpdateAck) {
        self.acked.send_modify(|acked| {
            acked.refused = if ack.seq == acked.seq { acked.refused } else { 0 } + ack.refused;
            acked.seq = acked.seq.max(ack.seq);
        });
    }
}

// === impl DataTransport ===

impl Transport for DataTransport {
    type Destination = (String, u16);
    type Message = Outgoing;
    type Reply = ();
    type Error = SessionError;

    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    async fn send(
        &self,
        _destination: &(String, u16),
        batch: &[Outgoing],
    ) -> Delivery<(), SessionError> {
        let Some(shared) = self.shared.upgrade() else {
            return Err(Undelivered::all(Failure::Final, SessionError::Closed));
        };
        deliver(&shared, batch).await.map(|()| vec![(); batch.len()])
    }
}

async fn deliver(
    shared: &Arc<Shared>,
    batch: &[Outgoing],
) -> Result<(), Undelivered<(), SessionError>> {
    let lost = |error| Undelivered::all(Failure::Lost, error);
    let mut link = shared.data.connection.lock().await;
    let Some(connection) = link.as_mut() else {
        return Err(Undelivered::all(Failure::Unreachable, SessionError::Closed));
    };
    let encoded = encode_batch(shared, batch, connection.seq)
        .map_err(|error| Undelivered::all(Failure::Final, error))?;
    if encoded.frames.is_empty() {
        return Ok(());
    }
    connection.seq += encoded.batches;
    let (session, seq) = (connection.session, connection.seq);
    if let Err(error) = connection.writer.write(&encoded.frames).await {
        // A part of a frame may have been written: nothing can follow it.
        *link = None;
        shared.broken.notify_one();
        return Err(lost(error));
    }
    drop(link);
    if encoded.batches == 0 {
        return Ok(());
    }
    let refused = wait_for_ack(shared, session, seq).await.map_err(lost)?;
    for (key, next) in &encoded.positions {
        shared.followed.acked(key, *next);
        // Progress that the manager refused goes with a later probe.
        if refused > 0 {
            shared.followed.mark(key, false, BackpressureLevel::Reject, shared.now());
        }
    }
    Ok(())
}

fn encode_batch(shared: &Shared, batch: &[Outgoing], seq: u64) -> Result<Encoded, SessionError> {
    let mut encoded = Encoded { frames: Vec::new(), positions: Vec::new(), batches: 0 };
    let mut updates = UpdateBatch::default();
    let (mut seen, mut bytes) = (BTreeSet::new(), 0);
    let merged = shared.level() >= BackpressureLevel::Batch || batch.len() > 1;
    let flush = |updates: &mut UpdateBatch, encoded: &mut Encoded| {
        if updates.updates.is_empty() {
            return Ok(());
        }
        encoded.batches += 1;
        (updates.seq, updates.merged) = (seq + encoded.batches, merged);
        encode(&mut encoded.frames, FrameKind::Progress, updates)?;
        updates.updates.clear();
        Ok::<(), SessionError>(())
    };
    for message in batch {
        match message {
            Outgoing::Stats => encode(&mut encoded.frames, FrameKind::Stats, &shared.stats())?,
            Outgoing::Debug => encode(&mut encoded.frames, FrameKind::Debug, &shared.debug())?,
            Outgoing::Update(key) if !seen.insert(key) => {}
            Outgoing::Update(key) => {
                let Some(after) = shared.followed.begin_send(key) else { continue };
                let Some(view) = shared.executor.peek(key, after) else {
                    shared.followed.forget(key);
                    continue;
                };
                encoded.positions.push((key.clone(), view.next));
                for page in pages(after, view, OUTPUT_BYTES_MAX) {
                    let size = page.view.output.iter().map(|chunk| chunk.text.len()).sum::<usize>();
                    if bytes + size > OUTPUT_BYTES_MAX {
                        flush(&mut updates, &mut encoded)?;
                        bytes = 0;
                    }
                    bytes += size;
                    updates.updates.push(page);
                }
            }
        }
    }
    flush(&mut updates, &mut encoded)?;
    Ok(encoded)
}

/// Waits until a batch is acknowledged; returns how much of its progress was refused.
async fn wait_for_ack(shared: &Shared, session: u64, seq: u64) -> Result<u32, SessionError> {
    let mut acked = shared.data.acked.subscribe();
    let is_over = |acked: &Acked| acked.session != session || acked.closed || acked.seq >= seq;
    let waited = tokio::time::timeout(ACK_TIMEOUT, acked.wait_for(is_over)).await;
    match waited {
        Ok(Ok(acked)) if acked.session == session && acked.seq >= seq => Ok(acked.refused),
        Ok(_) => Err(SessionError::Closed),
        Err(_) => {
            shared.broken.notify_one();
            Err(SessionError::Timeout(ACK_TIMEOUT))
        }
    }
}

/// Configuration of the queue to a manager. Updates may be repeated: they are cumulative.
pub(super) fn outgoing_config() -> OutgoingConfig {
    OutgoingConfig {
        queue: QueueConfig::for_role(Role::Worker),
        max_destinations: 16,
        attempt_timeout: ACK_TIMEOUT + Duration::from_secs(2),
        safety: Safety::Idempotent,
        ..OutgoingConfig::default()
    }
}
