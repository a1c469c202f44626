use super::data_link::{Outgoing, UpdateQueue};
use super::pages::pages;
use super::shared::Shared;
use crate::tasks::session::{SessionError, UpdateBatch, encode};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate::frame::FrameKind;
use tidegate::outbox::{
    Delivery, Destination, DestinationQueueStats, Failure, HandBack, OutgoingConfig,
    OutgoingConfigError, OutgoingRequestManager, QueueConfig, Safety, Transport, Undelivered,
};
use tidegate::signal::BackpressureLevel;
use tidegate::task::ExecutionKey;
use tidegate::{MessageClass, Role};
use tokio::time::{Instant, sleep_until, timeout_at};

/// Messages of one batch.
const BATCH_MAX: usize = 64;
/// Most output of one frame, in bytes: a quarter of the longest frame.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Longest time to write a batch and to receive its acknowledgement.
const ACK_TIMEOUT: Duration = Duration::from_secs(10);

/// Queues to the manager of a worker, and their senders.
pub(super) struct ManagerQueue {
    outbox: OutgoingRequestManager<DataTransport>,
    data: UpdateLane,
    ends: UpdateLane,
}

/// Queue to a manager. A sender waits for the acknowledgement of its batch, so ends have a queue and a sender of
/// their own: they wait for no acknowledgement of data.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UpdateLane {
    manager: (String, u16),
    has_ends: bool,
}

/// Sends batches of updates by the data connection.
pub(super) struct DataTransport {
    /// Weak, because the worker owns the outbox.
    shared: Weak<Shared>,
}

/// Frames of a batch, and the offsets between which they have output.
struct Encoded {
    frames: Vec<u8>,
    positions: Vec<(ExecutionKey, u64, u64)>,
    /// Batches of updates in the frames.
    batches: u64,
}

// === impl ManagerQueue ===

impl ManagerQueue {
    /// The queue of a worker on the current runtime, and where messages come back that could not be sent.
    ///
    /// # Errors
    ///
    /// When the configuration is not valid.
    pub(super) fn new(
        shared: &Arc<Shared>,
    ) -> Result<(Self, HandBack<DataTransport>), OutgoingConfigError> {
        let transport = DataTransport { shared: Arc::downgrade(shared) };
        let (outbox, hand_back) = OutgoingRequestManager::new(transport, outgoing_config())?;
        let lane = |has_ends| UpdateLane { manager: shared.manager.destination(), has_ends };
        Ok((Self { outbox, data: lane(false), ends: lane(true) }, hand_back))
    }
}

impl UpdateQueue for ManagerQueue {
    fn queue(&self, class: MessageClass, message: Outgoing) -> Option<Outgoing> {
        let lane = if class == MessageClass::Control { &self.ends } else { &self.data };
        match self.outbox.enqueue(lane, class, message) {
            Ok(put) => put.dropped,
            Err(refused) => Some(refused.message),
        }
    }

    fn stats(&self) -> Option<DestinationQueueStats> {
        self.outbox.stats_of(&self.data)
    }

    fn ends_waiting(&self) -> u64 {
        let stats = self.outbox.stats_of(&self.ends);
        stats.map_or(0, |stats| stats.queue.control_size as u64)
    }

    fn room(&self) -> u64 {
        let stats = self.stats().map(|stats| stats.queue);
        let used = stats.map_or(0, |queue| queue.primary_size + queue.overflow_size);
        outgoing_config().queue.bound().saturating_sub(used) as u64
    }
}

// === impl UpdateLane ===

impl Destination for UpdateLane {
    fn host(&self) -> String {
        self.manager.0.clone()
    }

    fn port(&self) -> u16 {
        self.manager.1
    }
}

// === impl DataTransport ===

impl Transport for DataTransport {
    type Destination = UpdateLane;
    type Message = Outgoing;
    type Reply = ();
    type Error = SessionError;

    fn batch_max(&self) -> usize {
        BATCH_MAX
    }

    async fn send(&self, lane: &UpdateLane, batch: &[Outgoing]) -> Delivery<(), SessionError> {
        let Some(shared) = self.shared.upgrade() else {
            return Err(Undelivered::all(Failure::Final, SessionError::Closed));
        };
        // The batch has left the queue, which has room for others now.
        shared.followed.changed.notify_one();
        deliver(&shared, lane.has_ends, batch).await.map(|()| vec![(); batch.len()])
    }
}

async fn deliver(
    shared: &Arc<Shared>,
    has_ends: bool,
    batch: &[Outgoing],
) -> Result<(), Undelivered<(), SessionError>> {
    let until = Instant::now() + ACK_TIMEOUT;
    let mut link = shared.data.connection.lock().await;
    // Taken out for the time of the write: after one that was given up half way, nothing may follow.
    let Some(mut connection) = link.take() else {
        return Err(Undelivered::all(Failure::Unreachable, SessionError::Closed));
    };
    let encoded = match encode_batch(shared, has_ends, batch, connection.seq) {
        Ok(encoded) => encoded,
        Err(error) => {
            *link = Some(connection);
            return Err(Undelivered::all(Failure::Final, error));
        }
    };
    connection.seq += encoded.batches;
    let (number, seq) = (connection.number, connection.seq);
    let refused_before = shared.data.acked.borrow().refused;
    let lost = |error| {
        shared.data.broken.send_replace(number);
        Undelivered::all(Failure::Lost, error)
    };
    let mut acked = shared.data.acked.subscribe();
    let written = tokio::select! {
        written = connection.writer.write(&encoded.frames) => written,
        () = sleep_until(until) => Err(SessionError::Timeout(ACK_TIMEOUT)),
        // The end of the session must not wait for a manager that does not read.
        _ = acked.wait_for(|acked| acked.closed) => Err(SessionError::Closed),
    };
    written.map_err(lost)?;
    *link = Some(connection);
    drop(link);
    if encoded.batches == 0 {
        return Ok(());
    }
    let refused = match timeout_at(until, shared.data.wait_for_ack(number, seq)).await {
        Ok(refused) => refused.map_err(lost)?,
        Err(_) => return Err(lost(SessionError::Timeout(ACK_TIMEOUT))),
    };
    for (key, after, next) in &encoded.positions {
        shared.followed.acked(key, *after, *next);
        // Progress that the manager refused goes with a later probe. That of an end is never refused: what was
        // meanwhile is of a batch beside it.
        if refused > refused_before && !has_ends {
            shared.followed.mark(key, false, BackpressureLevel::Reject, shared.now());
        }
    }
    Ok(())
}

fn encode_batch(
    shared: &Shared,
    has_ends: bool,
    batch: &[Outgoing],
    seq: u64,
) -> Result<Encoded, SessionError> {
    let mut encoded = Encoded { frames: Vec::new(), positions: Vec::new(), batches: 0 };
    let mut updates = UpdateBatch::default();
    let (mut seen, mut bytes) = (BTreeSet::new(), 0);
    let count = batch.iter().filter(|message| matches!(message, Outgoing::Update(_))).count();
    let merged = shared.level() >= BackpressureLevel::Batch || count > 1;
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
            Outgoing::Update(key) if !has_ends && shared.followed.is_ending(key) => {
                shared.followed.begin_send(key);
            }
            // Queued before the manager asked for a slower pace: it has to follow that.
            Outgoing::Update(key) if !has_ends && shared.has_slowed_since_queued(key) => {
                shared.lost(Some(message.clone()));
            }
            Outgoing::Update(key) => {
                let Some(after) = shared.followed.begin_send(key) else { continue };
                let Some(view) = shared.executor.peek(key, after) else {
                    shared.followed.forget(key);
                    continue;
                };
                encoded.positions.push((key.clone(), after, view.next));
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

/// Configuration of the queue to a manager. Updates may be repeated: they are cumulative.
fn outgoing_config() -> OutgoingConfig {
    OutgoingConfig {
        queue: QueueConfig::for_role(Role::Worker),
        max_destinations: 16,
        attempt_timeout: ACK_TIMEOUT + Duration::from_secs(2),
        safety: Safety::Idempotent,
        ..OutgoingConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::execution::ExecuteBody;
    use crate::tasks::executor::{Executor, ExecutorConfig, MockRunner, Runner};
    use crate::tasks::session::{FrameReader, FrameWriter, UpdateAck};
    use tidegate::signal::BackpressureSignal;
    use tokio::runtime::Handle;

    /// A worker that follows an execution with output, on the current runtime.
    fn shared() -> (Arc<Shared>, [Outgoing; 1]) {
        let runner = Runner::Mock(MockRunner::new(Duration::ZERO, Vec::new()));
        let executor = Executor::start(ExecutorConfig::new("w", 1), runner, Handle::current());
        let shared = Shared::new(executor, "127.0.0.1:1".parse().unwrap(), None, 1);
        let body = ExecuteBody {
            eval_id: "a".to_owned(),
            code: "fill 10000\nhang".to_owned(),
            attempt: 1,
            ..ExecuteBody::default()
        };
        shared.executor.execute(body).unwrap();
        let key: ExecutionKey = "a@1".parse().unwrap();
        shared.followed.follow(&key, 0, || tokio::spawn(async {}).abort_handle());
        (Arc::new(shared), [Outgoing::Update(key)])
    }

    fn ack(seq: u64, refused: u32) -> UpdateAck {
        UpdateAck { seq, signal: BackpressureSignal::CLEAR, refused, ended: Vec::new() }
    }

    /// The sender of the queue would give the write up, and begin another in the middle of a frame.
    #[tokio::test(start_paused = true)]
    async fn a_manager_that_does_not_read_breaks_the_connection() {
        let (shared, batch) = shared();
        tokio::task::yield_now().await;
        let (near, _far) = tokio::io::duplex(16);
        let number = shared.data.attach(FrameWriter::new(near)).await;
        let began = Instant::now();
        let error = deliver(&shared, false, &batch).await.unwrap_err();
        assert!(matches!(error.error, SessionError::Timeout(_)), "{:?}", error.error);
        assert!(began.elapsed() < outgoing_config().attempt_timeout, "before the sender gives up");
        shared.data.broken(number).await;
        let next = deliver(&shared, false, &batch).await.unwrap_err();
        assert!(matches!(next.failure, Failure::Unreachable), "nothing follows half a frame");
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_is_given_up_half_way_leaves_no_connection() {
        let (shared, batch) = shared();
        tokio::task::yield_now().await;
        let (near, _far) = tokio::io::duplex(16);
        shared.data.attach(FrameWriter::new(near)).await;
        let given_up =
            tokio::time::timeout(Duration::from_secs(1), deliver(&shared, false, &batch)).await;
        assert!(given_up.is_err());
        let next = deliver(&shared, false, &batch).await.unwrap_err();
        assert!(matches!(next.failure, Failure::Unreachable));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_session_does_not_wait_for_a_manager_that_does_not_read() {
        let (shared, batch) = shared();
        tokio::task::yield_now().await;
        let (near, _far) = tokio::io::duplex(16);
        shared.data.attach(FrameWriter::new(near)).await;
        let sending = Arc::clone(&shared);
        let delivering =
            tokio::spawn(async move { deliver(&sending, false, &batch).await.is_ok() });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        shared.data.detach().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(!delivering.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn the_failure_of_a_connection_does_not_end_the_next_one() {
        let (shared, batch) = shared();
        let (near, far) = tokio::io::duplex(16);
        drop(far);
        let first = shared.data.attach(FrameWriter::new(near)).await;
        assert!(deliver(&shared, false, &batch).await.is_err());
        shared.data.broken(first).await;
        let (near, _far) = tokio::io::duplex(16);
        let second = shared.data.attach(FrameWriter::new(near)).await;
        let ended = tokio::time::timeout(Duration::from_secs(60), shared.data.broken(second)).await;
        assert!(ended.is_err(), "it lasts");
    }

    /// One delivery may be several batches, each with its acknowledgement.
    #[tokio::test]
    async fn progress_refused_in_any_batch_of_a_delivery_is_sent_again() {
        let (shared, batch) = shared();
        tokio::task::yield_now().await;
        let (near, far) = tokio::io::duplex(1 << 20);
        shared.data.attach(FrameWriter::new(near)).await;
        let mut reader = FrameReader::new(far);
        let sending = Arc::clone(&shared);
        let delivering =
            tokio::spawn(async move { deliver(&sending, false, &batch).await.is_ok() });
        let sent: UpdateBatch = reader.next_of(FrameKind::Progress).await.unwrap();
        shared.data.acked(&ack(sent.seq - 1, 1));
        shared.data.acked(&ack(sent.seq, 0));
        assert!(delivering.await.unwrap());
        assert_eq!(shared.followed.waiting().updates, 1);
    }
}
