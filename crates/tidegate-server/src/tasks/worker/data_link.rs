use crate::tasks::session::{FrameWriter, SessionError, UpdateAck};
use tidegate::MessageClass;
use tidegate::outbox::DestinationQueueStats;
use tidegate::task::ExecutionKey;
use tokio::sync::{Mutex, watch};

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
    pub(super) connection: Mutex<Option<Connection>>,
    pub(super) acked: watch::Sender<Acked>,
    /// Number of the last connection that failed.
    pub(super) broken: watch::Sender<u64>,
}

/// A data connection, with the number of its last batch.
pub(super) struct Connection {
    pub(super) writer: FrameWriter,
    pub(super) number: u64,
    pub(super) seq: u64,
}

/// Acknowledgements of a connection.
#[derive(Clone, Default)]
pub(super) struct Acked {
    /// Number of the connection, counted by this worker: those of sessions begin anew with each manager.
    connection: u64,
    /// Last batch that was received.
    seq: u64,
    /// Progress that was refused so far.
    pub(super) refused: u64,
    pub(super) closed: bool,
}

/// Queue of messages to a manager.
pub(super) trait UpdateQueue: Send + Sync {
    /// Queues a message, and returns the one that was refused or displaced, if any.
    fn queue(&self, class: MessageClass, message: Outgoing) -> Option<Outgoing>;

    /// State of the queue of data, once it was used.
    fn stats(&self) -> Option<DestinationQueueStats>;

    /// Ends that wait.
    fn ends_waiting(&self) -> u64;

    /// Messages of data that it can take before it has to drop one.
    fn room(&self) -> u64;
}

// === impl DataLink ===

impl DataLink {
    /// Uses this connection from now on, and returns its number.
    pub(super) async fn attach(&self, writer: FrameWriter) -> u64 {
        let mut connection = self.connection.lock().await;
        let number = self.acked.borrow().connection + 1;
        self.acked.send_replace(Acked { connection: number, ..Acked::default() });
        *connection = Some(Connection { writer, number, seq: 0 });
        number
    }

    /// The session has ended: what is being sent fails.
    pub(super) async fn detach(&self) {
        self.acked.send_modify(|acked| acked.closed = true);
        *self.connection.lock().await = None;
    }

    /// Waits until this connection fails. The failure of an earlier one is none of it.
    pub(super) async fn broken(&self, number: u64) {
        let mut broken = self.broken.subscribe();
        // Fails never: the sender is in here.
        let _ = broken.wait_for(|broken| *broken == number).await;
    }

    /// Takes in an acknowledgement.
    pub(super) fn acked(&self, ack: &UpdateAck) {
        self.acked.send_modify(|acked| {
            acked.refused = acked.refused.saturating_add(ack.refused.into());
            acked.seq = acked.seq.max(ack.seq);
        });
    }

    /// Waits until a batch is acknowledged; returns how much progress was refused so far.
    pub(super) async fn wait_for_ack(&self, number: u64, seq: u64) -> Result<u64, SessionError> {
        let mut acked = self.acked.subscribe();
        let is_over =
            |acked: &Acked| acked.connection != number || acked.closed || acked.seq >= seq;
        match acked.wait_for(is_over).await {
            Ok(acked) if acked.connection == number && acked.seq >= seq => Ok(acked.refused),
            _ => Err(SessionError::Closed),
        }
    }
}
