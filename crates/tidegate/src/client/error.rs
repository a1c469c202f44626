use std::io;
use std::time::Duration;
use tidegate_core::frame::{FrameError, RecordFault, Reject, RejectReason};

/// Why a client takes and sends nothing any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The client was closed.
    #[error("the client was closed")]
    Closed,
    /// The server speaks another version of the protocol. What to do: update the older one of the two.
    #[error("{server} speaks another version of the protocol: {message}; update the older side")]
    Version {
        /// The server's address.
        server: String,
        /// The reason.
        message: String,
    },
    /// The server needs a token, or does not know this one. What to do: use a token of one of its clients.
    #[error("{server} does not let this client in: {message}; use a token of one of its clients")]
    Unauthorized {
        /// The server's address.
        server: String,
        /// The reason.
        message: String,
    },
    /// The server speaks TLS, and the connector does not. What to do: connect over TLS.
    #[error("{server} speaks TLS, and this client does not: connect over TLS")]
    SpeaksTls {
        /// The server's address.
        server: String,
    },
    /// No connection can be made, and a further attempt would not change that.
    #[error("can't connect to {server}: {message}")]
    Unreachable {
        /// The server's address.
        server: String,
        /// The connector's explanation.
        message: String,
    },
    /// The server takes less in one frame than this client was told to cut. What to do: cut smaller batches.
    #[error(
        "{server} takes {field} up to {theirs}, and batches are cut at {ours}: cut them smaller"
    )]
    Limits {
        /// The server's address.
        server: String,
        /// Which limit.
        field: &'static str,
        /// Batch size of the client.
        ours: u32,
        /// Largest batch that the server accepts.
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
pub enum ClientSendError {
    /// No server would take it.
    #[error("the record can't be sent: {0}")]
    Refused(RecordFault),
    /// The client takes nothing any more.
    #[error(transparent)]
    Ended(#[from] ClientError),
}

/// Why a record was not taken at once. The caller still has it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientTrySendError {
    /// The buffer is full: the server is slower than this, or away.
    #[error("the buffer is full until the server has acknowledged some of it")]
    Full,
    /// No server would take it, or the client takes nothing any more.
    #[error(transparent)]
    NotSent(#[from] ClientSendError),
}

/// Why not all of some records were taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{taken} records were taken, and then: {error}")]
pub struct SendBatchError {
    /// Number of records accepted, from the first on; the error concerns the record after them.
    pub taken: usize,
    /// Why the next one was not.
    #[source]
    pub error: ClientSendError,
}

/// Not all that was sent is durable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlushError {
    /// All is settled, but some of it the server did not take. It is in [`Rejections`](super::Rejections).
    #[error("the server did not take {records} records; the client's rejections have them")]
    Rejected {
        /// Number of rejected records since the last flush.
        records: u64,
    },
    /// The client ended before all was settled. [`close`](super::IngestClient::close) hands the rest back.
    #[error("{records} records are not acknowledged: {error}")]
    Ended {
        /// Number of records that are not known to be durable.
        records: u64,
        /// The error that ended the client.
        #[source]
        error: ClientError,
    },
}

/// A failed connection. The client opens another one and resends unanswered batches.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The connection could not be opened.
    #[error("can't connect to {server}: {error}")]
    Connect {
        /// To whom.
        server: String,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// The connection broke.
    #[error("the connection to {server} broke: {error}")]
    Broken {
        /// To whom.
        server: String,
        /// The IO error.
        #[source]
        error: io::Error,
    },
    /// The server closed it.
    #[error("{server} closed the connection{}", if *.within_frame { " within a frame" } else { "" })]
    Ended {
        /// The server's address.
        server: String,
        /// True if the connection ended within a frame.
        within_frame: bool,
    },
    /// The server did not answer.
    #[error("{server} was silent for {silence:?} with batches under way")]
    Silent {
        /// The server's address.
        server: String,
        /// For how long.
        silence: Duration,
    },
    /// The server sent something that is no valid answer.
    #[error("{server} sent what is no answer: {error}")]
    BadAnswer {
        /// The server's address.
        server: String,
        /// The decoding error.
        #[source]
        error: FrameError,
    },
    /// The server answered a batch that was never sent.
    #[error("{server} answered batch {seq}, which was never sent")]
    UnknownBatch {
        /// The server's address.
        server: String,
        /// The number.
        seq: u64,
    },
    /// The server refused the connection itself.
    #[error("{server} refused the connection: {}: {}", .reject.reason, .reject.message)]
    Refused {
        /// The server's address.
        server: String,
        /// The rejection.
        reject: Box<Reject>,
    },
}

// === impl Trouble ===

impl Trouble {
    /// True if another connection has taken over the sender's name.
    pub(super) fn is_sender_taken(&self) -> bool {
        matches!(self, Self::Refused { reject, .. } if reject.reason == RejectReason::SenderTaken)
    }

    /// The error of the connection itself, if there is one.
    pub(super) fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Connect { error, .. } | Self::Broken { error, .. } => Some(error),
            _ => None,
        }
    }
}
