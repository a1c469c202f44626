//! Buffer of a client, between its callers and its connection.
//!
//! # Implementation
//!
//! Records are encoded as they come, into the batch that is open. When it is whole it is cut: it gets its number,
//! goes into the in_flight as the bytes that will be sent, and stays there until it is over. A part is cut only
//! when it can be sent at once, so that a server that is away finds whole batches when it comes back.

use super::config::{BATCHES_MAX, ClientConfig, Numbering};
use super::in_flight_batches::{Held, InFlightBatches};
use super::rejections::RejectCause;
use super::stats::{ClientStats, Latencies};
use bytes::Bytes;
use std::time::Duration;
use tidegate_core::frame::{
    Ack, Batch, BatchBuilder, BatchPushError, FrameLimits, Reassembler, RecordFault, Reject,
    Welcome,
};
use tidegate_core::sequence::SEQ_WINDOW;
use tidegate_core::signal::{BackpressureSignal, Flush, FlushPolicy, SignalBoard, Update, Waiting};
use tidegate_core::usage::{Names, UsageRecord};

/// A frame this near to its limit is whole: the longest record has less.
const LONGEST_RECORD_BYTES: u32 = 1_536;

/// The least and the most to wait before a batch that was refused is sent again, whatever the server says.
const RETRY_MIN: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(super) struct Buffer {
    config: ClientConfig,
    policy: FlushPolicy,
    open: BatchBuilder,
    /// Since when the oldest record of the open batch waits.
    open_since: Duration,
    in_flight: InFlightBatches,
    board: SignalBoard<()>,
    last_sent: Option<Duration>,
    in_flight_max: usize,
    /// The server's last welcome.
    welcome: Option<Welcome>,
    given_up: Vec<GivenUp>,
    rejected_since_flush: u64,
    /// Records that were handed back when the client ended.
    handed_back: u64,
    totals: ClientStats,
    latencies: Latencies,
}

/// A batch that will not be sent again.
#[derive(Debug)]
pub(super) struct GivenUp {
    pub seq: u64,
    pub cause: RejectCause,
    pub frame: Bytes,
}

/// Effect of accepting a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Nothing that a connection has to know.
    Quietly,
    /// There is something to be sent, now or soon.
    ToSend,
}

/// Next action of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Write(Bytes),
    /// Nothing, until then, or until something changes.
    Wait(Option<Duration>),
}

/// A batch was answered that was never sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NeverSent(pub u64);

// === impl Buffer ===

impl Buffer {
    pub(super) fn new(config: &ClientConfig) -> Self {
        let FrameLimits { frame_bytes_max, batch_records_max, .. } = config.batch;
        Self {
            policy: FlushPolicy {
                batch_updates: batch_records_max.into(),
                batch_bytes: frame_bytes_max.saturating_sub(LONGEST_RECORD_BYTES).into(),
                linger: config.linger.unwrap_or_default(),
            },
            open: BatchBuilder::new(config.batch),
            open_since: Duration::ZERO,
            in_flight: InFlightBatches::default(),
            board: SignalBoard::new(1),
            last_sent: None,
            in_flight_max: config.in_flight_max,
            welcome: None,
            given_up: Vec::new(),
            rejected_since_flush: 0,
            handed_back: 0,
            totals: ClientStats::default(),
            latencies: Latencies::new(),
            config: config.clone(),
        }
    }

    /// Takes a record, if there is room for it.
    ///
    /// # Errors
    ///
    /// When there is none until something is over, or when no server would take it.
    #[inline]
    pub(super) fn push(
        &mut self,
        record: &UsageRecord,
        now: Duration,
    ) -> Result<Taken, BatchPushError> {
        if !self.has_room() {
            return Err(BatchPushError::Full);
        }
        let mut taken = match self.open.push(record) {
            Ok(()) => Taken::Quietly,
            Err(BatchPushError::Full) if self.in_flight.batches() < BATCHES_MAX => {
                self.cut();
                // A record that has no room in an empty batch has none anywhere.
                let refused = |_| BatchPushError::Refused(RecordFault::Shape);
                self.open.push(record).map_err(refused)?;
                Taken::ToSend
            }
            Err(not_added) => return Err(not_added),
        };
        self.totals.records_taken += 1;
        if self.open.record_count() == 1 {
            self.open_since = now;
            taken = Taken::ToSend;
        }
        if self.is_full() && self.in_flight.batches() < BATCHES_MAX {
            self.cut();
            taken = Taken::ToSend;
        }
        Ok(taken)
    }

    fn has_room(&self) -> bool {
        let open = self.open.record_count() as u64;
        self.in_flight.records() + open < self.config.buffer_records
            && self.in_flight.bytes() + (self.open.frame_bytes() as u64) < self.config.buffer_bytes
    }

    fn is_full(&self) -> bool {
        self.open.record_count() as u64 >= self.policy.batch_updates
    }

    /// Ends the open batch, if there is anything in it, and gives it its number.
    pub(super) fn cut(&mut self) {
        let records = self.open.record_count() as u32;
        if records == 0 {
            return;
        }
        let seq = self.in_flight.next_seq();
        let frame = self.open.finish(seq, self.in_flight.settled(), self.config.class);
        if self.server_has(seq) {
            self.totals.records_known += u64::from(records);
            self.in_flight.add_over();
        } else {
            self.in_flight.add(frame, records, self.open_since);
        }
    }

    /// Returns the next action. A returned frame counts as in flight.
    pub(super) fn next(&mut self, now: Duration) -> Next {
        if self.in_flight.in_flight() >= self.in_flight_max {
            return Next::Wait(None);
        }
        let waiting = self.waiting(now);
        let signal = self.board.current(now);
        match self.policy.decide(&signal, &waiting, self.last_sent, now) {
            Flush::Idle => Next::Wait(self.in_flight.next_retry(now)),
            Flush::WaitUntil(until) => {
                self.spare(&signal);
                let retry = self.in_flight.next_retry(now);
                Next::Wait(Some(retry.map_or(until, |retry| retry.min(until))))
            }
            Flush::SendNow | Flush::SendBatchOf(_) | Flush::Probe(_) => self.send(now),
        }
    }

    fn waiting(&self, now: Duration) -> Waiting {
        let class = self.config.class;
        let cut = self.in_flight.ready(now);
        let open = (self.config.linger.is_some() && !self.open.is_empty()).then(|| {
            let bytes = self.open.frame_bytes() as u64;
            (self.open.record_count() as u64, bytes, self.open_since)
        });
        let both = cut.into_iter().chain(open);
        both.fold(
            Waiting { class, updates: 0, bytes: 0, since: Duration::MAX },
            |all, (updates, bytes, since)| Waiting {
                class,
                updates: all.updates + updates,
                bytes: all.bytes + bytes,
                since: all.since.min(since),
            },
        )
    }

    fn send(&mut self, now: Duration) -> Next {
        if self.in_flight.ready(now).is_none() {
            self.cut();
        }
        let Some(held) = self.in_flight.send_next(now) else {
            // The server had what was cut just now.
            return Next::Wait(self.in_flight.next_retry(now));
        };
        let (frame, records, sends) = (held.frame.clone(), held.records, held.sends);
        self.last_sent = Some(now);
        self.totals.batches_sent += 1;
        self.totals.bytes_sent += frame.len() as u64;
        if sends > 1 {
            self.totals.records_resent += u64::from(records);
        }
        Next::Write(frame)
    }

    /// Gives up what was never sent, if the server asks for that and it may be.
    fn spare(&mut self, signal: &BackpressureSignal) {
        if signal.may_drop(self.config.class, Update::Progress) {
            for (seq, held) in self.in_flight.drop_unsent() {
                self.give_up(seq, held, RejectCause::Spared);
            }
        }
    }

    /// The server was reached: takes in what it has and what it asks for.
    ///
    /// # Errors
    ///
    /// When this client's numbers can't be used, or not any more.
    pub(super) fn welcome(
        &mut self,
        welcome: Welcome,
        unix_ns: u64,
        now: Duration,
    ) -> Result<(), BadNumbers> {
        let continues = self.config.numbering == Numbering::Continue;
        if continues && self.welcome.is_some() && welcome.settled_low >= self.in_flight.next_seq() {
            // Nobody but this client uses numbers from its base on.
            return Err(BadNumbers::Taken);
        }
        if continues && self.welcome.is_none() {
            // What an earlier client of this name sent may still be on its way to the store, so that the server
            // does not know its numbers. It began at an earlier time and cut less than a batch a nanosecond.
            let beyond = welcome.settled_low.checked_add(2 * SEQ_WINDOW).ok_or(BadNumbers::Used)?;
            let base = beyond.max(unix_ns);
            if base > u64::MAX / 2 {
                return Err(BadNumbers::Used);
            }
            let (limits, class) = (self.config.batch, self.config.class);
            self.in_flight.rebase(base, |frame, seq, settled| {
                renumbered(frame, limits, |builder| builder.finish(seq, settled, class))
            });
        }
        self.in_flight_max = self.config.in_flight_max.min(welcome.batches_in_flight_max as usize);
        self.board.record((), welcome.signal, now);
        self.totals.connections += 1;
        self.totals.connected = true;
        let has: Vec<_> = self.in_flight.seqs().filter(|seq| welcome.has(*seq)).collect();
        self.welcome = Some(welcome);
        for seq in has {
            let Some(held) = self.in_flight.finish(seq) else { continue };
            match held.sends {
                0 => self.totals.records_known += u64::from(held.records),
                _ => self.acked(&held, now),
            }
        }
        Ok(())
    }

    fn server_has(&self, seq: u64) -> bool {
        let has = |welcome: &Welcome| welcome.has(seq);
        self.config.numbering == Numbering::FromOne && self.welcome.as_ref().is_some_and(has)
    }

    /// Batches are durable. Tells whether any of them was not over before.
    ///
    /// # Errors
    ///
    /// When one of them was never sent. Nothing is changed then.
    pub(super) fn ack(&mut self, ack: &Ack, now: Duration) -> Result<bool, NeverSent> {
        if let Some(seq) = ack.seqs.iter().find(|seq| self.in_flight.was_never_sent(*seq)) {
            return Err(NeverSent(seq));
        }
        self.board.record((), ack.signal, now);
        let mut any = false;
        for seq in ack.seqs.iter() {
            if let Some(held) = self.in_flight.finish(seq) {
                self.acked(&held, now);
                any = true;
            }
        }
        Ok(any)
    }

    fn acked(&mut self, held: &Held, now: Duration) {
        self.totals.records_acked += u64::from(held.records);
        self.latencies.record(now.saturating_sub(held.since), held.records);
    }

    /// A batch was not taken: it is given up, or put off. `chance` spreads when it is sent again.
    ///
    /// # Errors
    ///
    /// When it was never sent.
    pub(super) fn reject(
        &mut self,
        reject: &Reject,
        now: Duration,
        chance: f64,
    ) -> Result<(), NeverSent> {
        let Reject { seq, reason, .. } = *reject;
        if self.in_flight.was_never_sent(seq) {
            return Err(NeverSent(seq));
        }
        self.board.record((), reject.signal, now);
        self.totals.rejects.add(reason);
        let Some(after_ms) = reject.retry_after_ms else {
            if let Some(held) = self.in_flight.finish(seq) {
                let message = reject.message.clone();
                self.give_up(seq, held, RejectCause::Refused { reason, message });
            }
            return Ok(());
        };
        let after = Duration::from_millis(after_ms.into()).clamp(RETRY_MIN, RETRY_MAX);
        self.in_flight.put_off(seq, now.saturating_add(after.mul_f64(1.0 + chance / 4.0)));
        Ok(())
    }

    fn give_up(&mut self, seq: u64, held: Held, cause: RejectCause) {
        self.totals.records_rejected += u64::from(held.records);
        self.rejected_since_flush += u64::from(held.records);
        self.given_up.push(GivenUp { seq, cause, frame: held.frame });
    }

    /// The connection is gone, or none could be made.
    pub(super) fn disconnected(&mut self) {
        self.in_flight.disconnected();
        self.board.forget(&());
        self.totals.connected = false;
        self.totals.troubles += 1;
    }

    /// True once the server was reached.
    pub(super) fn was_reached(&self) -> bool {
        self.welcome.is_some()
    }

    /// Takes the batches given up since the last call.
    pub(super) fn take_given_up(&mut self) -> Vec<GivenUp> {
        std::mem::take(&mut self.given_up)
    }

    /// Takes the number of records rejected since the last call.
    pub(super) fn take_rejected(&mut self) -> u64 {
        std::mem::take(&mut self.rejected_since_flush)
    }

    /// Number of batches cut so far.
    pub(super) fn cut_count(&self) -> u64 {
        self.in_flight.cut()
    }

    /// Number of batches, from the first on, that have ended.
    pub(super) fn over_count(&self) -> u64 {
        self.in_flight.over()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.in_flight()
    }

    /// Records that are neither durable nor given up.
    pub(super) fn unsettled_records(&self) -> u64 {
        self.held_records() + self.handed_back
    }

    fn held_records(&self) -> u64 {
        self.in_flight.records() + self.open.record_count() as u64
    }

    /// All that is neither durable nor given up: batches with their numbers, then what was not cut.
    /// To be called at the end only.
    pub(super) fn drain(&mut self) -> Vec<(Option<u64>, Bytes)> {
        self.handed_back = self.unsettled_records();
        let open = self.open.record_count();
        let cut = self.in_flight.drain().into_iter().map(|(seq, held)| (Some(seq), held.frame));
        let mut all: Vec<_> = cut.collect();
        if open > 0 {
            all.push((None, self.open.finish(1, 0, self.config.class)));
        }
        all
    }

    pub(super) fn stats(&self, now: Duration) -> ClientStats {
        ClientStats {
            records_held: self.held_records(),
            bytes_held: self.in_flight.bytes() + self.open_bytes(),
            batches_in_flight: self.in_flight.in_flight(),
            signal: self.board.current(now),
            latency: self.latencies.stats(),
            ..self.totals.clone()
        }
    }

    fn open_bytes(&self) -> u64 {
        if self.open.is_empty() { 0 } else { self.open.frame_bytes() as u64 }
    }
}

/// Why a client can't use its numbers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadNumbers {
    /// There are none left.
    Used,
    /// Another client of the same name has used them.
    Taken,
}

/// The records of a frame that a [`BatchBuilder`] of these limits has made.
pub(super) fn records_of(frame: &Bytes, limits: FrameLimits) -> Vec<UsageRecord> {
    let mut reassembler = Reassembler::new(limits);
    reassembler.push(frame.clone());
    let Ok(Some(raw)) = reassembler.next() else { return Vec::new() };
    let batch = Batch::decode(&raw, &limits, &mut Names::default());
    batch.map(|batch| batch.records).unwrap_or_default()
}

fn renumbered(
    frame: &Bytes,
    limits: FrameLimits,
    finish: impl FnOnce(&mut BatchBuilder) -> Bytes,
) -> Bytes {
    let mut builder = BatchBuilder::new(limits);
    for record in records_of(frame, limits) {
        // They fitted before, and a builder keeps room for the longest number.
        let _ = builder.push(&record);
    }
    finish(&mut builder)
}
