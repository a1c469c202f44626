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
use crate::store::{BatchRefusal, Origin, PricedBatch, Store};
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
        let Parsed { connection, message, occupied } = parsed;
        match message {
            Message::Hello(hello) => {
                let (number, order) = self.hello(&connection, hello).await?;
                Some(Priced { connection, number, tiered: false, order, occupied })
            }
            Message::Lines(records) => {
                let number = self.evaluator.begin_batch();
                let source = connection.source();
                let records = self.price(records).await;
                let batch = PricedBatch { origin: None, source, records };
                Some(Priced {
                    connection,
                    number,
                    tiered: self.tiered(),
                    order: Order::Persist(batch),
                    occupied,
                })
            }
            Message::Batch { seq, settled, records } => {
                let number = self.evaluator.begin_batch();
                let origin = (seq, settled);
                let order = self.batch(&connection, number, origin, records).await?;
                Some(Priced { connection, number, tiered: self.tiered(), order, occupied })
            }
        }
    }

    async fn hello(&mut self, connection: &Arc<Connection>, hello: Hello) -> Option<(u64, Order)> {
        let sender = hello.sender.to_arc();
        let owner = connection.owner();
        self.know(&sender, owner.is_some()).await;
        if !self.senders.claim(&sender, owner) {
            let why = BatchRefusal::SenderOwned.to_string();
            self.rejections.note(connection, RejectReason::SenderOwned.name(), &why);
            connection.reject(self.reject(0, RejectReason::SenderOwned, &why));
            connection.cut();
            return None;
        }
        if let Some(before) = self.senders.speak(&sender, connection) {
            PipelineCounters::add(&self.counters.senders_superseded, 1);
            tracing::info!(
                sender = &*sender, old = %before.peer(), new = %connection.peer(),
                "another connection speaks for this sender now"
            );
            before.complain(self.superseded(0));
            before.cut();
        }
        Some((self.evaluator.begin_batch(), Order::Greet(hello)))
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
        let owner = connection.owner();
        self.know(&sender, owner.is_some()).await;
        match self.senders.see(&sender, connection, (seq, settled), number) {
            Verdict::Count => {
                let origin = Some(Origin { sender, owner, seq, settled });
                let (source, records) = (connection.source(), self.price(records).await);
                Some(Order::Persist(PricedBatch { origin, source, records }))
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
            Verdict::Jump => {
                let why = "it settles more numbers than the sender can have sent: number batches \
                           without gaps, or begin anew with the first batch of a connection";
                self.rejections.note(connection, RejectReason::SeqJump.name(), &why);
                connection.reject(self.reject(seq, RejectReason::SeqJump, why));
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
        let why = "another connection speaks for this sender now";
        self.reject(seq, RejectReason::SenderTaken, why)
    }

    /// A rejection for good.
    fn reject(&self, seq: u64, reason: RejectReason, why: &str) -> Reject {
        let (signal, message) = (self.signal.get(), why.to_owned());
        Reject { seq, reason, retry_after_ms: None, signal, message }
    }

    /// Loads the sequence window of a sender from the store, unless it is known, and where names have owners its
    /// owner too.
    async fn know(&mut self, sender: &Arc<str>, owned: bool) {
        for stale in self.stale.take() {
            self.senders.doubt(&stale);
        }
        while !self.senders.knows(sender) {
            let stored = async {
                let window = self.store.seen(sender).await?;
                let owner = if owned { self.store.owner(sender).await? } else { None };
                Ok((window, owner))
            };
            match stored.await {
                Ok(stored) => {
                    self.backoff.over();
                    let durable = self.durable.load(Ordering::Acquire);
                    self.senders.load(Arc::clone(sender), stored, durable);
                }
                Err(error) => self.backoff.after(&error).await,
            }
        }
    }

    fn tiered(&self) -> bool {
        self.evaluator.tariffs().have_tiers()
    }

    async fn price(&mut self, records: Vec<UsageRecord>) -> Vec<PricedRecord> {
        for refused in self.stale.take_refused() {
            self.evaluator.uncount(&refused);
        }
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
