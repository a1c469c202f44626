use std::io;
use std::time::Duration;
use tidegate_core::frame::{FrameError, RecordFault, Reject, RejectReason};

/// Why a client takes and sends nothing any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// It was closed.
    #[error("the client was closed")]
    Closed,
    /// The server speaks another version of the protocol. What to do: update the older one of the two.
    #[error("{server} speaks another version of the protocol: {message}; update the older side")]
    Version {
        /// Who.
        server: String,
        /// What was said or seen.
        message: String,
    },
    /// The server takes less in one frame than this client was told to cut. What to do: cut smaller batches.
    #[error(
        "{server} takes {field} up to {theirs}, and batches are cut at {ours}: cut them smaller"
    )]
    Limits {
        /// Who.
        server: String,
        /// Which limit.
        field: &'static str,
        /// What the client cuts.
        ours: u32,
        /// What the server takes.
        theirs: u32,
    },
    /// Somebody else sends under the same name. What to do: give each client a name of its own.
    #[error("another client sends to {server} as {sender}: give each a name of its own")]
    NameTaken {
        /// To whom.
        server: String,
        /// The name.
        sender: String,
    },
    /// All numbers under this name are used. What to do: use another name.
    #[error("all numbers of this sender are used: use another name")]
    NumbersUsed,
}

/// Why a record was not taken. The caller still has it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// No server would take it.
    #[error("the record can't be sent: {0}")]
    Refused(RecordFault),
    /// The client takes nothing any more.
    #[error(transparent)]
    Ended(#[from] ClientError),
}

/// Why a record was not taken at once. The caller still has it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrySendError {
    /// The buffer is full: the server is slower than this, or away.
    #[error("the buffer is full until the server has acknowledged some of it")]
    Full,
    /// No server would take it, or the client takes nothing any more.
    #[error(transparent)]
    NotSent(#[from] SendError),
}

/// Why not all of some records were taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{taken} records were taken, and then: {error}")]
pub struct SendBatchError {
    /// So many from the first on were taken; the one behind them is what the error is about.
    pub taken: usize,
    /// Why the next one was not.
    #[source]
    pub error: SendError,
}

/// Not all that was sent is durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlushError {
    /// All is settled, but some of it the server did not take. It is in [`Rejections`](super::Rejections).
    #[error("the server did not take {records} records; the client's rejections have them")]
    Rejected {
        /// How many since the last flush.
        records: u64,
    },
    /// The client ended before all was settled. [`close`](super::IngestClient::close) hands the rest back.
    #[error("{records} records are not acknowledged: {error}")]
    Ended {
        /// How many records nobody knows to be durable.
        records: u64,
        /// What ended it.
        #[source]
        error: ClientError,
    },
}

/// What went wrong with a connection. The client makes another and sends again what was not answered.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// It could not be made.
    #[error("can't connect to {server}: {error}")]
    Connect {
        /// To whom.
        server: String,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// It broke.
    #[error("the connection to {server} broke: {error}")]
    Broken {
        /// To whom.
        server: String,
        /// How.
        #[source]
        error: io::Error,
    },
    /// The server closed it.
    #[error("{server} closed the connection{}", if *.within_frame { " within a frame" } else { "" })]
    Ended {
        /// Who.
        server: String,
        /// Whether a frame had begun whose end never came.
        within_frame: bool,
    },
    /// The server did not answer.
    #[error("{server} was silent for {silence:?} with batches under way")]
    Silent {
        /// Who.
        server: String,
        /// For how long.
        silence: Duration,
    },
    /// What the server sent is not an answer.
    #[error("{server} sent what is no answer: {error}")]
    BadAnswer {
        /// Who.
        server: String,
        /// What is wrong with it.
        #[source]
        error: FrameError,
    },
    /// The server answered a batch that was never sent.
    #[error("{server} answered batch {seq}, which was never sent")]
    UnknownBatch {
        /// Who.
        server: String,
        /// The number.
        seq: u64,
    },
    /// The server refused the connection itself.
    #[error("{server} refused the connection: {}: {}", .reject.reason, .reject.message)]
    Refused {
        /// Who.
        server: String,
        /// What it said.
        reject: Box<Reject>,
    },
}

// === impl Trouble ===

impl Trouble {
    /// Whether another connection speaks for the same sender.
    pub(super) fn is_sender_taken(&self) -> bool {
        matches!(self, Self::Refused { reject, .. } if reject.reason == RejectReason::SenderTaken)
    }
}
