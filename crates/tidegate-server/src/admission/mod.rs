//! What turns the tracker's snapshots into advice, alerts and log events while the gateway runs.

mod observer;
mod retry_board;

pub use observer::{AlertBoard, Observer, observe_forever, observe_shares};
pub use retry_board::RetryBoard;
