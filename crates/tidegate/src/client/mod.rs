//! Sending usage records to an ingest server: [`IngestClient`].
//!
//! | a record that | goes |
//! |---|---|
//! | is not taken | back to its caller, which still has it |
//! | was taken, and the connection breaks | out again over the next connection, under the same number |
//! | the server refuses for now | out again when the server says so |
//! | the server refuses for good | to [`Rejections`], with the reason |
//! | is telemetry that the server asks to be spared | to [`Rejections`] |
//! | is not acknowledged when the client is closed | back in the [`Summary`] |
//!
//! # Example
//!
//! ```no_run
//! use std::time::Duration;
//! use tidegate::client::{ClientConfig, IngestClient};
//! use tidegate::usage::UsageRecord;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = ClientConfig::new("worker-17".parse()?);
//! let (client, _rejections) = IngestClient::connect("127.0.0.1:7070", config)?;
//! let record = UsageRecord {
//!     tenant: "acme".into(),
//!     meter: "tokens.output".into(),
//!     quantity: 512.into(),
//!     time_ns: 1_700_000_000_000_000_000,
//!     labels: "".into(),
//! };
//! client.send(&record).await?;
//! client.flush().await?;
//! let summary = client.close(Duration::from_secs(5)).await;
//! assert_eq!(summary.stats.records_acked, 1);
//! # Ok(())
//! # }
//! ```

mod buffer;
mod config;
mod connector;
mod driver;
mod error;
mod in_flight_batches;
mod ingest_client;
mod rejections;
mod session;
mod shared;
mod stats;

pub use config::{ClientConfig, ClientConfigError, Numbering};
pub use connector::{Connector, TcpConnector};
pub use error::{
    ClientError, ClientSendError, ClientTrySendError, FlushError, SendBatchError, Trouble,
};
pub use ingest_client::{IngestClient, Summary, Unacked};
pub use rejections::{RejectCause, RejectedBatch, Rejections};
pub use stats::{ClientStats, LatencyStats, RejectCounts};
