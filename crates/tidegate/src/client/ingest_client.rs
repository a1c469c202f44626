use super::buffer::records_of;
use super::config::{ClientConfig, ClientConfigError};
use super::connector::{Connector, TcpConnector};
use super::driver::Driver;
use super::error::{ClientError, ClientSendError, ClientTrySendError, FlushError, SendBatchError};
use super::rejections::Rejections;
use super::shared::Shared;
use super::stats::ClientStats;
use crate::rng::Rng;
use std::slice;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::usage::UsageRecord;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::timeout;

/// Sends usage records to a Tidegate ingest server, each counted once.
///
/// Records are taken into a bounded buffer, encoded, cut into numbered batches and sent by a task of the client's
/// own. A batch is held until the server has acknowledged that it is durable. When the connection breaks, another
/// is made and all that was not acknowledged is sent again under the same numbers, so that the server counts it
/// once. What the server asks for in its signals is heeded; a full buffer makes [`send`](Self::send) wait, which
/// hands the backpressure on to whoever produces the records.
///
/// Dropping it ends its task at once; [`close`](Self::close) is the orderly way.
#[derive(Debug)]
pub struct IngestClient {
    shared: Arc<Shared>,
}

/// Final state of a client.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Its final counts.
    pub stats: ClientStats,
    /// Records that are not known to be durable, in order. A batch that was sent may be durable nevertheless.
    pub unacked: Vec<Unacked>,
    /// The error that ended the client, unless it was closed.
    pub error: Option<ClientError>,
}

/// Records that are not known to be durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unacked {
    /// The number of their batch; `None` when they were not in one yet.
    pub seq: Option<u64>,
    /// The records.
    pub records: Vec<UsageRecord>,
}

/// Handling of records that are not in a whole batch when a client ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Send,
    HandBack,
}

// === impl IngestClient ===

impl IngestClient {
    /// A client of the server at an address such as `127.0.0.1:7070`, and where batches come back that the
    /// server will never take.
    ///
    /// Returns at once. The client keeps trying to reach the server, with growing waits;
    /// [`stats`](Self::stats) shows the progress, and [`reached`](Self::reached) waits for it.
    ///
    /// # Errors
    ///
    /// When the configuration is not valid, or this is called outside of a tokio runtime.
    pub fn connect(
        address: impl Into<String>,
        config: ClientConfig,
    ) -> Result<(Self, Rejections), ClientConfigError> {
        Self::connect_by(TcpConnector::new(address), config)
    }

    /// The same over any kind of connection.
    ///
    /// # Errors
    ///
    /// As for [`connect`](Self::connect).
    pub fn connect_by(
        connector: impl Connector,
        config: ClientConfig,
    ) -> Result<(Self, Rejections), ClientConfigError> {
        config.validate()?;
        let runtime = Handle::try_current().map_err(|_| ClientConfigError::NoRuntime)?;
        let (shared, rejections) = Shared::new(config);
        let shared = Arc::new(shared);
        let rng = Rng::from_process();
        let driver = Driver { shared: Arc::clone(&shared), connector, rng };
        runtime.spawn(driver.run());
        Ok((Self { shared }, rejections))
    }

    /// Takes a record, as soon as there is room for it.
    ///
    /// # Errors
    ///
    /// When no server would take it, or the client takes nothing any more.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the record was not taken.
    pub async fn send(&self, record: &UsageRecord) -> Result<(), ClientSendError> {
        self.send_batch(slice::from_ref(record)).await.map_err(|error| error.error)
    }

    /// Takes a record if there is room for it now.
    ///
    /// # Errors
    ///
    /// When there is none, no server would take it, or the client takes nothing any more.
    pub fn try_send(&self, record: &UsageRecord) -> Result<(), ClientTrySendError> {
        self.shared.push(slice::from_ref(record)).1
    }

    /// Takes records in order, as soon as there is room for them. They need not end up in one batch.
    ///
    /// # Errors
    ///
    /// When no server would take one of them, or the client takes nothing any more. Says how many were taken.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, some may have been taken, and nobody knows how many: [`send`](Self::send) is for those who
    /// have to know.
    pub async fn send_batch(&self, records: &[UsageRecord]) -> Result<(), SendBatchError> {
        let mut taken = 0;
        loop {
            // Listening before looking: room that comes in between is not missed.
            let room = listening(&self.shared.room);
            let (count, result) = self.shared.push(&records[taken..]);
            taken += count;
            match result {
                Ok(()) => return Ok(()),
                Err(ClientTrySendError::Full) => room.await,
                Err(ClientTrySendError::NotSent(error)) => {
                    return Err(SendBatchError { taken, error });
                }
            }
        }
    }

    /// Waits until all that was taken before is settled: durable, or rejected for good. A part of a batch is sent
    /// as it is.
    ///
    /// # Errors
    ///
    /// When something was rejected since the last flush, or the client has ended before all was settled.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, nothing is lost; it can be called again.
    pub async fn flush(&self) -> Result<(), FlushError> {
        let cut = self.shared.cut();
        self.settled(cut).await?;
        match self.shared.change(|buffer| buffer.take_rejected()) {
            0 => Ok(()),
            records => Err(FlushError::Rejected { records }),
        }
    }

    /// Waits until the server was reached once.
    ///
    /// # Errors
    ///
    /// When the client has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, nothing is changed.
    pub async fn reached(&self) -> Result<(), ClientError> {
        loop {
            let over = listening(&self.shared.over);
            if let Some(error) = self.shared.ended() {
                return Err(error);
            }
            if self.shared.read(|buffer| buffer.was_reached()) {
                return Ok(());
            }
            over.await;
        }
    }

    /// Current counts of the client.
    #[must_use]
    pub fn stats(&self) -> ClientStats {
        self.shared.stats()
    }

    /// Takes nothing any more, gives what was taken this long to become durable, and ends. What is not
    /// acknowledged by then comes back.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, nothing is taken any more, and the rest goes on; it can be called again.
    pub async fn close(&self, grace: Duration) -> Summary {
        self.finish(grace, Part::Send).await
    }

    /// The same, but records that do not make a whole batch are not sent: they come back.
    ///
    /// For a client with [`Numbering::FromOne`](super::Numbering::FromOne) that ends in the middle: a part of a
    /// batch, sent under its number, would later be taken for the whole.
    ///
    /// # Cancel safety
    ///
    /// As for [`close`](Self::close).
    pub async fn interrupt(&self, grace: Duration) -> Summary {
        self.finish(grace, Part::HandBack).await
    }

    async fn finish(&self, grace: Duration, part: Part) -> Summary {
        let error = self.shared.ended().filter(|error| *error != ClientError::Closed);
        self.shared.end(ClientError::Closed);
        let cut = match part {
            Part::Send => self.shared.cut(),
            Part::HandBack => self.shared.read(|buffer| buffer.cut_count()),
        };
        if error.is_none() {
            // Too late is not an error: what is left is handed back.
            let _ = timeout(grace, self.all_over(cut)).await;
        }
        self.shared.stop.send_replace(true);
        let left = self.shared.change(|buffer| buffer.drain());
        let limits = self.shared.config.batch;
        let unacked = |(seq, frame)| Unacked { seq, records: records_of(&frame, limits) };
        let unacked = left.into_iter().map(unacked).collect();
        Summary { stats: self.stats(), unacked, error }
    }

    async fn settled(&self, cut: u64) -> Result<(), FlushError> {
        loop {
            let over = listening(&self.shared.over);
            if self.shared.read(|buffer| buffer.over_count() >= cut) {
                return Ok(());
            }
            if let Some(error) = self.shared.ended() {
                let records = self.shared.read(|buffer| buffer.unsettled_records());
                return Err(FlushError::Ended { records, error });
            }
            over.await;
        }
    }

    /// Waits until so many batches are over, also of a client that takes nothing any more.
    async fn all_over(&self, cut: u64) {
        loop {
            let over = listening(&self.shared.over);
            let failed = self.shared.ended().is_some_and(|error| error != ClientError::Closed);
            if failed || self.shared.read(|buffer| buffer.over_count() >= cut) {
                return;
            }
            over.await;
        }
    }
}

impl Drop for IngestClient {
    fn drop(&mut self) {
        self.shared.end(ClientError::Closed);
        self.shared.stop.send_replace(true);
    }
}

/// A notification that counts from now on, not from when it is first waited for.
fn listening(notify: &Notify) -> Notified<'_> {
    notify.notified()
}
