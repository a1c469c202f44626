//! Sessions between workers and managers: their messages, and frames of them on a connection.
//! Uses `execution` for the types of the executor contract, and the frames of the library.
//! Must not know the executor, the manager, nor which side it is on.

mod connection;
mod error;
mod lane;
mod message;

pub use connection::{FrameReader, FrameWriter, SessionStream, decode, encode};
pub use error::SessionError;
pub use lane::{Lane, PREAMBLE_BYTES};
pub use message::{
    Answer, AnswerResult, BufferMetrics, Dispatch, ExecutionUpdate, Interest, Join, JoinAnswer,
    UpdateAck, UpdateBatch, Welcome, WorkerState, WorkerStats,
};
