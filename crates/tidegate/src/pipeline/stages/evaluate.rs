use super::store_backoff::StoreBackoff;
use crate::channel::{WindowedReceiver, WindowedSender};
use crate::pipeline::connection::Connection;
use crate::pipeline::counters::PipelineCounters;
use crate::pipeline::item::{Message, Order, Parsed, Priced};
use crate::pipeline::measure::meter::StageMeter;
use crate::pipeline::measure::signal_cell::SignalCell;
use crate::pipeline::rejections::Rejections;
use crate::pipeline::senders::{Senders, Verdict};
use crate::pipeline::stale_senders::StaleSenders;
use crate::store::{Origin, PricedBatch, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_core::frame::{Hello, Reject, RejectReason};
use tidegate_core::tariff::Evaluator;
use tidegate_core::usage::{PricedRecord, UsageRecord};
use tokio::time::Instant;

/// Messages that are taken at once.
const AT_ONCE: usize = 16;

/// When a sender whose number is too far ahead should try again: its acks are on their way.
pub(super) const TOO_FAR_RETRY_MS: u32 = 100;

/// Prices records, each once: what came before is known by its sender and number.
pub(crate) struct Evaluate<S> {
    pub input: WindowedReceiver<Parsed>,
    pub output: WindowedSender<Priced>,
    pub meter: Arc<StageMeter>,
    pub next: Arc<StageMeter>,
    pub store: Arc<S>,
    pub evaluator: Evaluator,
    pub senders: Senders,
    pub counters: Arc<PipelineCounters>,
    pub rejections: Rejections,
    pub signal: SignalCell,
    pub backoff: StoreBackoff,
    pub stale: StaleSenders,
    /// The last batch that is durable.
    pub durable: Arc<AtomicU64>,
}

// === impl Evaluate ===

impl<S: Store> Evaluate<S> {
    /// Runs until all senders are gone, or the next stage is.
    pub(crate) async fn run(mut self) {
        let mut taken = Vec::new();
        while let Some(mut lease) = self.input.lease_many(&mut taken, AT_ONCE).await {
            for parsed in taken.drain(..) {
                let weight = crate::channel::Weigh::weight(&parsed);
                if let Some(priced) = self.evaluate(parsed).await
                    && self.next.waiting(self.output.send(priced)).await.is_err()
                {
                    return;
                }
                lease.release(weight);
            }
            self.evaluator.evict(self.durable.load(Ordering::Acquire));
        }
    }

    async fn evaluate(&mut self, parsed: Parsed) -> Option<Priced> {
        let Parsed { connection, message } = parsed;
        match message {
            Message::Hello(hello) => Some(self.hello(connection, hello).await),
            Message::Lines(records) => {
                let number = self.evaluator.begin_batch();
                let batch = PricedBatch { origin: None, records: self.price(records).await };
                Some(Priced { connection, number, order: Order::Persist(batch) })
            }
            Message::Batch { seq, settled, records } => {
                let number = self.evaluator.begin_batch();
                let origin = (seq, settled);
                let order = self.batch(&connection, number, origin, records).await?;
                Some(Priced { connection, number, order })
            }
        }
    }

    async fn hello(&mut self, connection: Arc<Connection>, hello: Hello) -> Priced {
        let sender = hello.sender.to_arc();
        self.know(&sender).await;
        if let Some(before) = self.senders.speak(&sender, &connection) {
            PipelineCounters::add(&self.counters.senders_superseded, 1);
            tracing::info!(
                sender = &*sender, old = %before.peer(), new = %connection.peer(),
                "another connection speaks for this sender now"
            );
            before.complain(self.superseded(0));
            before.cut();
        }
        Priced { connection, number: self.evaluator.begin_batch(), order: Order::Greet(hello) }
    }

    async fn batch(
        &mut self,
        connection: &Arc<Connection>,
        number: u64,
        (seq, settled): (u64, u64),
        records: Vec<UsageRecord>,
    ) -> Option<Order> {
        // The hello came before, or the batch had not passed the stage before this one.
        let sender = Arc::clone(connection.sender()?);
        self.know(&sender).await;
        match self.senders.see(&sender, connection, (seq, settled), number) {
            Verdict::Count => {
                let origin = Some(Origin { sender, seq, settled });
                Some(Order::Persist(PricedBatch { origin, records: self.price(records).await }))
            }
            Verdict::Repeat => Some(Order::Repeat { seq }),
            Verdict::TooFar => {
                self.rejections.count(connection, RejectReason::TooFar.name());
                connection.reject(Reject {
                    seq,
                    reason: RejectReason::TooFar,
                    retry_after_ms: Some(TOO_FAR_RETRY_MS),
                    signal: self.signal.get(),
                    message: "too far ahead of what is settled".to_owned(),
                });
                None
            }
            Verdict::Superseded => {
                self.rejections.count(connection, RejectReason::SenderTaken.name());
                connection.reject(self.superseded(seq));
                None
            }
        }
    }

    fn superseded(&self, seq: u64) -> Reject {
        Reject {
            seq,
            reason: RejectReason::SenderTaken,
            retry_after_ms: None,
            signal: self.signal.get(),
            message: "another connection speaks for this sender now".to_owned(),
        }
    }

    /// Loads the sequence window of a sender from the store, unless it is known.
    async fn know(&mut self, sender: &Arc<str>) {
        for stale in self.stale.take() {
            self.senders.doubt(&stale);
        }
        while !self.senders.knows(sender) {
            match self.store.seen(sender).await {
                Ok(window) => {
                    self.backoff.over();
                    let durable = self.durable.load(Ordering::Acquire);
                    self.senders.load(Arc::clone(sender), window, durable);
                }
                Err(error) => self.backoff.after(&error).await,
            }
        }
    }

    async fn price(&mut self, records: Vec<UsageRecord>) -> Vec<PricedRecord> {
        for key in self.evaluator.missing(&records) {
            let used = loop {
                let used = self.store.used(&key.tenant, &key.meter, key.from_ns, key.until_ns);
                match used.await {
                    Ok(used) => break used,
                    Err(error) => self.backoff.after(&error).await,
                }
            };
            self.backoff.over();
            self.evaluator.load(&key, used);
        }
        let (count, started) = (records.len() as u64, Instant::now());
        let priced: Vec<_> =
            records.into_iter().map(|record| self.evaluator.price(record)).collect();
        self.meter.record(count, started.elapsed());
        for fallback in priced.iter().filter_map(|priced| priced.charge.fallback) {
            self.counters.fell_back(fallback);
        }
        priced
    }
}
