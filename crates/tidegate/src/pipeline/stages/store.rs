use super::evaluate::TOO_FAR_RETRY_MS;
use super::store_backoff::StoreBackoff;
use crate::channel::WindowedReceiver;
use crate::pipeline::connection::Connection;
use crate::pipeline::counters::PipelineCounters;
use crate::pipeline::item::{Order, Priced};
use crate::pipeline::measure::meter::StageMeter;
use crate::pipeline::measure::signal_cell::SignalCell;
use crate::pipeline::rejections::Rejections;
use crate::pipeline::shares::Occupied;
use crate::pipeline::stale_senders::StaleSenders;
use crate::store::{Appended, BatchRefusal, PricedBatch, Store, is_large};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_core::frame::{FrameLimits, Hello, PROTOCOL_VERSION, Reject, RejectReason, Welcome};
use tidegate_core::sequence::SEQ_WINDOW;
use tidegate_core::usage::{Fallback, PricedRecord, UsageRecord};
use tokio::time::Instant;

/// Messages that become durable together: one wait for the disk pays for all that came meanwhile.
const AT_ONCE: usize = 256;

/// Stores priced records, then acknowledges them.
pub(crate) struct StoreStage<S> {
    pub input: WindowedReceiver<Priced>,
    pub meter: Arc<StageMeter>,
    pub store: Arc<S>,
    pub counters: Arc<PipelineCounters>,
    pub rejections: Rejections,
    pub signal: SignalCell,
    pub limits: FrameLimits,
    pub backoff: StoreBackoff,
    pub stale: StaleSenders,
    /// The last batch that is durable.
    pub durable: Arc<AtomicU64>,
}

/// Messages that become durable together.
#[derive(Debug, Default)]
struct Commit {
    batches: Vec<PricedBatch>,
    /// Connection and number of each batch, and the records of it that count for tiers.
    origins: Vec<(Arc<Connection>, Option<u64>, Vec<UsageRecord>)>,
    /// By connection, in the order in which they came.
    acks: Vec<(Arc<Connection>, Vec<u64>)>,
    greetings: Vec<(Arc<Connection>, Hello)>,
    /// Batches that had come before.
    repeated: u64,
    /// Shares of the pipeline, until all is answered.
    occupied: Vec<Occupied>,
}

// === impl StoreStage ===

impl<S: Store> StoreStage<S> {
    /// Runs until all senders are gone.
    pub(crate) async fn run(mut self) {
        let mut taken = Vec::new();
        while let Some(lease) = self.input.lease_many(&mut taken, AT_ONCE).await {
            let (items, started) = (lease.load().items, Instant::now());
            let last = taken.last().map_or(0, |priced: &Priced| priced.number);
            let mut commit = Commit::of(taken.drain(..));
            self.persist(&mut commit).await;
            self.meter.record(items, started.elapsed());
            self.durable.fetch_max(last, Ordering::AcqRel);
            self.tell(commit).await;
            drop(lease);
        }
    }

    async fn persist(&mut self, commit: &mut Commit) {
        PipelineCounters::add(&self.counters.batches_repeated, commit.repeated);
        let mut batches = std::mem::take(&mut commit.batches);
        if batches.is_empty() {
            return;
        }
        let records: Vec<_> = batches.iter().map(|batch| batch.records.len() as u64).collect();
        let mut in_doubt = false;
        let appended = loop {
            match self.store.append_counted(batches).await {
                Ok(appended) => break appended,
                Err(unstored) => {
                    in_doubt = true;
                    self.backoff.after(&unstored.error).await;
                    batches = unstored.batches;
                }
            }
        };
        self.backoff.over();
        PipelineCounters::add(&self.counters.commits, 1);
        let origins = std::mem::take(&mut commit.origins);
        for (((connection, seq, counted), records), (appended, series)) in
            origins.into_iter().zip(records).zip(appended)
        {
            connection.began(series);
            match appended {
                // After a failure, what the store has already may be what that failure did not tell of.
                Appended::Repeat if !in_doubt => {
                    PipelineCounters::add(&self.counters.batches_repeated, 1);
                }
                Appended::New | Appended::Repeat => {
                    PipelineCounters::add(&self.counters.batches_stored, 1);
                    PipelineCounters::add(&self.counters.records_stored, records);
                }
                Appended::Refused(why) => {
                    self.stale.add_refused(counted);
                    self.refuse(&connection, seq, why);
                    continue;
                }
            }
            if let Some(seq) = seq {
                commit.ack(connection, seq);
            }
        }
    }

    fn refuse(&self, connection: &Connection, seq: Option<u64>, why: BatchRefusal) {
        let (reason, retry_after_ms) = match why {
            BatchRefusal::TooFar => (RejectReason::TooFar, Some(TOO_FAR_RETRY_MS)),
            BatchRefusal::SenderOwned => (RejectReason::SenderOwned, None),
            BatchRefusal::SumOverflow => (RejectReason::SumOverflow, None),
            BatchRefusal::TooManySeriesOfSource { .. } | BatchRefusal::TooManySeries { .. } => {
                connection.hold();
                (RejectReason::TooManySeries, None)
            }
            BatchRefusal::NameTooLong => (RejectReason::Malformed, None),
        };
        self.rejections.note(connection, reason.name(), &why);
        // Sent again it must not be taken for one that is stored.
        if let Some(sender) = connection.sender() {
            self.stale.add(Arc::clone(sender));
        }
        if let Some(seq) = seq {
            let (signal, message) = (self.signal.get(), why.to_string());
            connection.reject(Reject { seq, reason, retry_after_ms, signal, message });
        }
    }

    async fn tell(&mut self, commit: Commit) {
        let Commit { acks, greetings, occupied: _occupied, .. } = commit;
        for (connection, seqs) in acks {
            connection.ack(&seqs);
        }
        for (connection, hello) in greetings {
            let welcome = self.welcome(&hello).await;
            connection.welcome(welcome);
        }
    }

    /// All that came before from this sender is durable by now, so the store knows all that was seen of it.
    async fn welcome(&mut self, hello: &Hello) -> Welcome {
        let seen = loop {
            match self.store.seen(hello.sender.as_str()).await {
                Ok(seen) => break seen,
                Err(error) => self.backoff.after(&error).await,
            }
        };
        self.backoff.over();
        Welcome {
            version: PROTOCOL_VERSION,
            limits: self.limits,
            batches_in_flight_max: SEQ_WINDOW as u32,
            settled_low: seen.low(),
            seen: Some(seen),
            signal: self.signal.get(),
        }
    }
}

// === impl Commit ===

impl Commit {
    fn of(taken: impl Iterator<Item = Priced>) -> Self {
        let mut commit = Self::default();
        for Priced { connection, order, tiered, occupied, .. } in taken {
            commit.occupied.push(occupied);
            match order {
                Order::Greet(hello) => commit.greetings.push((connection, hello)),
                Order::Repeat { seq } => {
                    commit.repeated += 1;
                    commit.ack(connection, seq);
                }
                Order::Persist(mut batch) => {
                    if batch.origin.is_none() {
                        commit.isolate(&connection, &mut batch, tiered);
                    }
                    let seq = batch.origin.as_ref().map(|origin| origin.seq);
                    commit.origins.push((connection, seq, counted(&batch, tiered)));
                    commit.batches.push(batch);
                }
            }
        }
        commit
    }

    /// Takes records of lines out of their batch that are stored or refused by themselves: those of each tenant
    /// and meter, and each large one.
    fn isolate(&mut self, connection: &Arc<Connection>, batch: &mut PricedBatch, tiered: bool) {
        let Some(first) = batch.records.first() else { return };
        let (tenant, meter) = (first.record.tenant.clone(), first.record.meter.clone());
        let is_first = |priced: &PricedRecord| {
            priced.record.tenant == tenant && priced.record.meter == meter && !is_large(priced)
        };
        if batch.records.iter().all(is_first) {
            return;
        }
        let (mut series, mut alone) = (HashMap::<_, Vec<PricedRecord>>::new(), Vec::new());
        for priced in std::mem::take(&mut batch.records) {
            if is_large(&priced) {
                alone.push(vec![priced]);
            } else {
                let key = (priced.record.tenant.clone(), priced.record.meter.clone());
                series.entry(key).or_default().push(priced);
            }
        }
        for records in series.into_values().chain(alone) {
            let alone = PricedBatch { origin: None, source: batch.source.clone(), records };
            self.origins.push((Arc::clone(connection), None, counted(&alone, tiered)));
            self.batches.push(alone);
        }
    }

    fn ack(&mut self, connection: Arc<Connection>, seq: u64) {
        let known = self.acks.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &connection));
        match known {
            Some((_, seqs)) => seqs.push(seq),
            None => self.acks.push((connection, vec![seq])),
        }
    }
}

/// The records of a batch that Evaluate has counted for tiers: none where no tariff has any.
fn counted(batch: &PricedBatch, tiered: bool) -> Vec<UsageRecord> {
    if !tiered {
        return Vec::new();
    }
    let counts = |priced: &&PricedRecord| priced.charge.fallback != Some(Fallback::OutOfRange);
    batch.records.iter().filter(counts).map(|priced| priced.record.clone()).collect()
}
