use crate::failure::Failure;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::client::{ClientConfig, ClientTrySendError, IngestClient, Rejections};
use tidegate::usage::UsageRecord;
use tidegate_sim::pipeline::FlowRecorder;

/// Records that a sender queues in front of its client. Further records are dropped and counted.
const WAITING_MAX: u64 = 1_000_000;

/// Ingest client with a queue of due records in front.
pub struct Sender {
    client: IngestClient,
    /// Keeps the channel of rejections open; the client counts them.
    _rejections: Rejections,
    record: UsageRecord,
    /// Queue: due time and count of records that the client has no room for.
    waiting: VecDeque<(Duration, u64)>,
    waiting_records: u64,
    /// Due time and count of records that are sent and not acknowledged, in order.
    sent: VecDeque<(Duration, u64)>,
    issued: u64,
    acked: u64,
    dropped: u64,
    failure: Option<String>,
}

/// Totals of a sender.
#[derive(Clone, Debug)]
pub struct Sent {
    pub tenant: Arc<str>,
    /// Records that the client accepted; their quantity numbers them from 1.
    pub issued: u64,
    /// Records that the server acknowledged as durable.
    pub acked: u64,
    /// Records that the server rejected permanently.
    pub rejected: u64,
    /// Records that were dropped because the queue was full.
    pub dropped: u64,
    /// Records that are queued or sent and not acknowledged.
    pub unacked_total: u64,
    pub resent: u64,
    pub failure: Option<String>,
}

// === impl Sender ===

impl Sender {
    /// Connects; must be called within a runtime.
    pub fn new(address: &str, name: &str, batch_records: u32) -> Result<Self, Failure> {
        let mut config = ClientConfig::new(name.parse().map_err(Failure::runtime)?);
        config.batch.batch_records_max = batch_records;
        let (client, rejections) = IngestClient::connect(address, config)
            .map_err(|error| Failure::Runtime(error.to_string()))?;
        let record = UsageRecord {
            tenant: name.into(),
            meter: "drill.records".into(),
            quantity: 0.into(),
            time_ns: 0,
            labels: "".into(),
        };
        Ok(Self {
            client,
            _rejections: rejections,
            record,
            waiting: VecDeque::new(),
            waiting_records: 0,
            sent: VecDeque::new(),
            issued: 0,
            acked: 0,
            dropped: 0,
            failure: None,
        })
    }

    /// Waits until the server has responded.
    pub async fn reached(&self) -> Result<(), String> {
        self.client.reached().await.map_err(|error| error.to_string())
    }

    /// Queues records that are due.
    pub fn due(&mut self, at: Duration, records: u64) {
        let queued = records.min(WAITING_MAX.saturating_sub(self.waiting_records));
        self.dropped += records - queued;
        if queued > 0 {
            self.waiting.push_back((at, queued));
            self.waiting_records += queued;
        }
        self.push();
    }

    /// Passes queued records on while the client has room.
    pub fn push(&mut self) {
        if self.waiting.is_empty() || self.failure.is_some() {
            return;
        }
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.record.time_ns = i64::try_from(unix.as_nanos()).unwrap_or(i64::MAX);
        while let Some((due, count)) = self.waiting.front_mut() {
            let mut taken = 0;
            let mut is_full = false;
            while taken < *count && !is_full {
                self.record.quantity = (self.issued + 1).into();
                match self.client.try_send(&self.record) {
                    Ok(()) => {
                        self.issued += 1;
                        taken += 1;
                    }
                    Err(ClientTrySendError::Full) => is_full = true,
                    Err(ClientTrySendError::NotSent(error)) => {
                        self.failure = Some(error.to_string());
                        is_full = true;
                    }
                }
            }
            let due = *due;
            *count -= taken;
            self.waiting_records -= taken;
            if taken > 0 {
                self.sent.push_back((due, taken));
            }
            if is_full {
                return;
            }
            self.waiting.pop_front();
        }
    }

    /// Counts records that were acknowledged since the last call.
    pub fn count_acks(&mut self, now: Duration, recorder: &mut FlowRecorder) {
        let acked = self.client.stats().records_acked;
        let mut more = acked.saturating_sub(self.acked);
        self.acked = acked;
        while more > 0 {
            let Some((due, count)) = self.sent.front_mut() else { return };
            let newly_acked = more.min(*count);
            recorder.stored(now, *due, newly_acked);
            *count -= newly_acked;
            more -= newly_acked;
            if *count == 0 {
                self.sent.pop_front();
            }
        }
    }

    /// True while records are not acknowledged.
    pub fn is_waiting(&self) -> bool {
        let stats = self.client.stats();
        self.failure.is_none() && (self.waiting_records > 0 || stats.records_held > 0)
    }

    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Closes the client; returns the totals.
    pub async fn end(self) -> Sent {
        let summary = self.client.close(Duration::ZERO).await;
        let unacked: u64 = summary.unacked.iter().map(|part| part.records.len() as u64).sum();
        Sent {
            tenant: self.record.tenant,
            issued: self.issued,
            acked: summary.stats.records_acked,
            rejected: summary.stats.records_rejected,
            dropped: self.dropped,
            unacked_total: self.waiting_records + unacked,
            resent: summary.stats.records_resent,
            failure: self.failure.or_else(|| summary.error.map(|error| error.to_string())),
        }
    }
}
