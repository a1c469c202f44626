use crate::commands::until_signal::failed;
use crate::failure::Failure;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::client::{ClientConfig, IngestClient, Rejections, TrySendError};
use tidegate::usage::UsageRecord;
use tidegate_sim::pipeline::FlowRecorder;

/// Records that one sender holds beside those that its client does. What is beyond that is lost, and counted.
const WAITING_MAX: u64 = 1_000_000;

/// One who sends: a client, and what is due that it has no room for.
pub struct Sender {
    client: IngestClient,
    /// Kept so that reports of what is refused have somewhere to go; they are counted by the client.
    _rejections: Rejections,
    record: UsageRecord,
    /// When how many records were due that the client has no room for yet.
    waiting: VecDeque<(Duration, u64)>,
    waiting_records: u64,
    /// When how many records were due that are not durable yet. They are acknowledged in their order.
    sent: VecDeque<(Duration, u64)>,
    issued: u64,
    acked: u64,
    not_held: u64,
    failure: Option<String>,
}

/// What became of a sender's records.
#[derive(Clone, Debug)]
pub struct Sent {
    pub tenant: Arc<str>,
    /// Records that its client took, numbered from 1 on by their quantity.
    pub issued: u64,
    /// Those that the ingestion said are durable.
    pub acked: u64,
    /// Those that it refused for good.
    pub rejected: u64,
    /// Records that were due and that nobody had room for.
    pub not_held: u64,
    /// Records that are neither durable nor lost: they wait here.
    pub held: u64,
    pub resent: u64,
    pub failure: Option<String>,
}

// === impl Sender ===

impl Sender {
    /// Connects; to be called within a runtime.
    pub fn new(address: &str, name: &str, batch_records: u32) -> Result<Self, Failure> {
        let mut config = ClientConfig::new(name.parse().map_err(failed)?);
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
            not_held: 0,
            failure: None,
        })
    }

    /// Waits until the ingestion was reached.
    pub async fn reached(&self) -> Result<(), String> {
        self.client.reached().await.map_err(|error| error.to_string())
    }

    /// So many more records are due.
    pub fn due(&mut self, at: Duration, records: u64) {
        let held = records.min(WAITING_MAX.saturating_sub(self.waiting_records));
        self.not_held += records - held;
        if held > 0 {
            self.waiting.push_back((at, held));
            self.waiting_records += held;
        }
        self.push();
    }

    /// Hands over what the client has room for.
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
                    Err(TrySendError::Full) => is_full = true,
                    Err(TrySendError::NotSent(error)) => {
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

    /// Counts what was acknowledged since it last looked.
    pub fn look(&mut self, now: Duration, recorder: &mut FlowRecorder) {
        let acked = self.client.stats().records_acked;
        let mut more = acked.saturating_sub(self.acked);
        self.acked = acked;
        while more > 0 {
            let Some((due, count)) = self.sent.front_mut() else { return };
            let these = more.min(*count);
            recorder.stored(now, *due, these);
            *count -= these;
            more -= these;
            if *count == 0 {
                self.sent.pop_front();
            }
        }
    }

    /// Whether something of it is not durable yet.
    pub fn is_waiting(&self) -> bool {
        let stats = self.client.stats();
        self.failure.is_none() && (self.waiting_records > 0 || stats.records_held > 0)
    }

    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Ends it.
    pub async fn end(self) -> Sent {
        let summary = self.client.close(Duration::ZERO).await;
        let unacked: u64 = summary.unacked.iter().map(|part| part.records.len() as u64).sum();
        Sent {
            tenant: self.record.tenant,
            issued: self.issued,
            acked: summary.stats.records_acked,
            rejected: summary.stats.records_rejected,
            not_held: self.not_held,
            held: self.waiting_records + unacked,
            resent: summary.stats.records_resent,
            failure: self.failure.or_else(|| summary.error.map(|error| error.to_string())),
        }
    }
}
