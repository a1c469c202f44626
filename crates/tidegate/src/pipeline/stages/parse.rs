use super::Work;
use crate::pipeline::access::{AccessError, SenderAccess, SenderIdentity};
use crate::pipeline::connection::Connection;
use crate::pipeline::counters::PipelineCounters;
use crate::pipeline::item::{Content, Message, Parsed, Piece};
use crate::pipeline::measure::signal_cell::SignalCell;
use crate::pipeline::rejections::Rejections;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_core::frame::{
    Batch, FrameError, FrameKind, FrameLimits, Hello, PROTOCOL_VERSION, RawFrame, Reject,
    RejectReason, SenderToken,
};
use tidegate_core::line_protocol::{LineParser, auth_line};
use tidegate_core::usage::{Names, UsageRecord};

/// Makes records of frames and lines.
pub(crate) struct Parse {
    pub counters: Arc<PipelineCounters>,
    pub rejections: Rejections,
    pub signal: SignalCell,
    pub limits: FrameLimits,
    pub lines: LineParser,
    pub names: Names,
    pub access: Arc<dyn SenderAccess>,
}

// === impl Parse ===

impl Work for Parse {
    type In = Piece;
    type Out = Parsed;

    fn work(&mut self, piece: Piece, made: &mut Vec<Parsed>) {
        let Piece { connection, content, occupied } = piece;
        let message = match content {
            Content::Lines(block) => self.parse_lines(&connection, &block),
            Content::Frame(frame) => match self.parse_frame(&connection, &frame) {
                Ok(message) => Some(message),
                Err(reject) => {
                    let ends = matches!(
                        reject.reason,
                        RejectReason::UnknownVersion | RejectReason::Unauthorized
                    );
                    connection.reached(reject.seq, 0);
                    connection.reject(reject);
                    if ends {
                        connection.cut();
                    }
                    None
                }
            },
        };
        made.extend(message.map(|message| Parsed { connection, message, occupied }));
    }
}

impl Parse {
    fn parse_lines(&mut self, connection: &Connection, block: &Bytes) -> Option<Message> {
        if connection.is_cut() {
            return None;
        }
        let mut block: &[u8] = block;
        let identity = match connection.identity() {
            Some(identity) => identity,
            None => {
                let shown = auth_line(block);
                let (token, length) = shown.as_ref().map_or((None, 0), |(t, n)| (Some(t), *n));
                block = &block[length..];
                if let Err(error) = self.identify(connection, token) {
                    self.rejections.note(connection, RejectReason::Unauthorized.name(), &error);
                    connection.cut();
                    return None;
                }
                connection.identity()?
            }
        };
        let mut records = Vec::new();
        let rejections = &self.rejections;
        let outcome =
            self.lines.parse_block(block, unix_ns(), &mut self.names, &mut records, &mut |error| {
                rejections.note(connection, error.reason(), &error)
            });
        PipelineCounters::add(&self.counters.lines, outcome.lines as u64);
        PipelineCounters::add(&self.counters.fields_skipped, outcome.fields_skipped as u64);
        self.drop_foreign(connection, identity, &mut records);
        PipelineCounters::add(&self.counters.records, records.len() as u64);
        (!records.is_empty()).then_some(Message::Lines(records))
    }

    /// Drops the records of tenants that the sender may not bill. Each is counted, and one is logged.
    fn drop_foreign(
        &self,
        connection: &Connection,
        identity: &SenderIdentity,
        records: &mut Vec<UsageRecord>,
    ) {
        if !matches!(identity, SenderIdentity::Client(_)) {
            return;
        }
        records.retain(|record| match identity.check(record) {
            Ok(()) => true,
            Err(error) => {
                self.rejections.note(connection, RejectReason::TenantRefused.name(), &error);
                false
            }
        });
    }

    fn identify(
        &self,
        connection: &Connection,
        token: Option<&SenderToken>,
    ) -> Result<(), AccessError> {
        let identity =
            self.access.identify(connection.protocol(), token, connection.certified()?)?;
        connection.set_identity(identity);
        Ok(())
    }

    fn parse_frame(
        &mut self,
        connection: &Connection,
        frame: &RawFrame,
    ) -> Result<Message, Reject> {
        let wrong = |error: FrameError| self.wrong(connection, frame, &error);
        match frame.kind {
            FrameKind::Hello => {
                let hello = Hello::decode(frame).map_err(wrong)?;
                self.check_hello(connection, &hello)?;
                Ok(Message::Hello(hello))
            }
            FrameKind::Batch => self.parse_batch(connection, frame),
            // What only a receiver says.
            given => Err(wrong(FrameError::WrongKind { expected: FrameKind::Batch, given })),
        }
    }

    fn check_hello(&self, connection: &Connection, hello: &Hello) -> Result<(), Reject> {
        if !hello.versions.contains(&PROTOCOL_VERSION) {
            let message = format!("version {PROTOCOL_VERSION} of the protocol is spoken here");
            return Err(self.refusal(connection, 0, RejectReason::UnknownVersion, message));
        }
        if connection.sender().is_none()
            && let Err(error) = self.identify(connection, hello.token.as_ref())
        {
            let reason = RejectReason::Unauthorized;
            return Err(self.refusal(connection, 0, reason, error.to_string()));
        }
        if !connection.set_sender(hello.sender.to_arc()) {
            let message = "this connection has said hello already".to_owned();
            return Err(self.refusal(connection, 0, RejectReason::SenderTaken, message));
        }
        Ok(())
    }

    fn parse_batch(
        &mut self,
        connection: &Connection,
        frame: &RawFrame,
    ) -> Result<Message, Reject> {
        if connection.sender().is_none() {
            let message = "a hello with the sender's name must come first".to_owned();
            let seq = frame.peek_seq().unwrap_or(0);
            return Err(self.refusal(connection, seq, RejectReason::HelloExpected, message));
        }
        let batch = Batch::decode(frame, &self.limits, &mut self.names)
            .map_err(|error| self.wrong(connection, frame, &error))?;
        let Batch { seq, settled, records, .. } = batch;
        if let Some(identity) = connection.identity()
            && let Err(error) = identity.check_all(&records)
        {
            let reason = RejectReason::TenantRefused;
            return Err(self.refusal(connection, seq, reason, error.to_string()));
        }
        let signal = self.signal.get();
        // One record by itself costs about as much as a hundred together.
        if signal.batch_only && records.len() == 1 {
            self.rejections.count(connection, RejectReason::Unbatched.name());
            return Err(Reject {
                seq,
                reason: RejectReason::Unbatched,
                retry_after_ms: Some(signal.delay_ms),
                signal,
                message: "the store is behind: put records together".to_owned(),
            });
        }
        PipelineCounters::add(&self.counters.records, records.len() as u64);
        Ok(Message::Batch { seq, settled, records })
    }

    fn wrong(&self, connection: &Connection, frame: &RawFrame, error: &FrameError) -> Reject {
        self.rejections.note(connection, error.reason(), error);
        Reject::of_error(frame.peek_seq(), error, self.signal.get())
    }

    fn refusal(
        &self,
        connection: &Connection,
        seq: u64,
        reason: RejectReason,
        message: String,
    ) -> Reject {
        self.rejections.note(connection, reason.name(), &message);
        Reject { seq, reason, retry_after_ms: None, signal: self.signal.get(), message }
    }
}

/// Now, for lines that don't say when. A clock before 1970 or after 2262 is wrong anyway.
fn unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
