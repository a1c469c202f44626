use super::Work;
use crate::pipeline::connection::Connection;
use crate::pipeline::counters::PipelineCounters;
use crate::pipeline::item::{Chunk, Content, Piece};
use crate::pipeline::measure::partial_bytes::PartialBytes;
use crate::pipeline::measure::signal_cell::SignalCell;
use crate::pipeline::protocol::Protocol;
use crate::pipeline::rejections::Rejections;
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_core::admission::MessageClass;
use tidegate_core::frame::{
    FrameError, FrameKind, FrameLimits, RawFrame, Reassembler, Reject, RejectReason,
};
use tidegate_core::line_protocol::LineCutter;

/// Why the last part of a connection is not taken.
const CUT_OFF: &str = "cut_off";

/// Puts frames and lines together that the network cut, and sheds by the class that stands before a frame's body.
#[derive(Debug)]
pub(crate) struct Reassemble {
    pub counters: Arc<PipelineCounters>,
    pub rejections: Rejections,
    pub signal: SignalCell,
    pub partial: PartialBytes,
    pub limits: FrameLimits,
    pub line_bytes_max: usize,
    /// One a connection that is open, so as bounded as those are.
    pub cutters: HashMap<u64, Cutter>,
}

/// Bytes of a connection that are not cut into frames or lines yet.
#[derive(Debug)]
pub(crate) enum Cutter {
    Frames(Reassembler),
    Lines(LineCutter),
}

// === impl Reassemble ===

impl Work for Reassemble {
    type In = Chunk;
    type Out = Piece;

    fn work(&mut self, chunk: Chunk, made: &mut Vec<Piece>) {
        // Its bytes are in the frames and lines from here on.
        let Chunk { connection, bytes, occupied: _occupied } = chunk;
        if connection.is_cut() {
            // Where its next frame begins is not known, or not asked any more.
            let cutter = self.cutters.remove(&connection.id());
            self.partial.moved(cutter.map_or(0, |cutter| cutter.held_bytes()), 0);
            return connection.end();
        }
        let mut cutter = match self.cutters.remove(&connection.id()) {
            Some(cutter) => cutter,
            None => Cutter::new(connection.protocol(), self.limits, self.line_bytes_max),
        };
        let before = cutter.held_bytes();
        let ends = bytes.is_none();
        match (&mut cutter, bytes) {
            (Cutter::Frames(reassembler), Some(bytes)) => {
                reassembler.push(bytes);
                self.cut_frames(reassembler, &connection, made);
            }
            (Cutter::Lines(lines), Some(bytes)) => {
                lines.push(bytes);
                self.cut_lines(lines, &connection, made);
            }
            (Cutter::Lines(lines), None) => self.finish_lines(lines, &connection, made),
            (Cutter::Frames(reassembler), None) => {
                if reassembler.is_within_frame() {
                    let error = "the connection ended within a frame";
                    self.rejections.note(&connection, CUT_OFF, &error);
                }
            }
        }
        if ends || connection.is_cut() {
            self.partial.moved(before, 0);
            connection.end();
        } else {
            self.partial.moved(before, cutter.held_bytes());
            self.cutters.insert(connection.id(), cutter);
            connection.answered();
        }
    }
}

impl Reassemble {
    /// The last line may have no newline; but only who closes a connection says that it is whole.
    fn finish_lines(
        &self,
        lines: &mut LineCutter,
        connection: &Arc<Connection>,
        made: &mut Vec<Piece>,
    ) {
        let Some(last) = lines.finish() else { return };
        if connection.is_broken_off() {
            let error = "the connection broke off within a line";
            return self.rejections.note(connection, CUT_OFF, &error);
        }
        made.push(Piece::new(connection, Content::Lines(last)));
    }

    fn cut_lines(
        &self,
        lines: &mut LineCutter,
        connection: &Arc<Connection>,
        made: &mut Vec<Piece>,
    ) {
        loop {
            match lines.next() {
                Ok(Some(block)) => {
                    made.push(Piece::new(connection, Content::Lines(block)));
                }
                Ok(None) => return,
                Err(error) => self.rejections.note(connection, error.reason(), &error),
            }
        }
    }

    fn cut_frames(
        &self,
        reassembler: &mut Reassembler,
        connection: &Arc<Connection>,
        made: &mut Vec<Piece>,
    ) {
        loop {
            match reassembler.next() {
                Ok(Some(frame)) => {
                    PipelineCounters::add(&self.counters.frames, 1);
                    if let Some(frame) = self.admit(frame, connection) {
                        made.push(Piece::new(connection, Content::Frame(frame)));
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    self.rejections.note(connection, error.reason(), &error);
                    connection.reached(seq_of(&error).unwrap_or(0), 0);
                    connection.complain(Reject::of_error(
                        seq_of(&error),
                        &error,
                        self.signal.get(),
                    ));
                    if error.breaks_framing() {
                        // Where the next frame begins can't be known.
                        connection.cut();
                        return;
                    }
                }
            }
        }
    }

    /// Decided from what stands before the body: what is shed is not decoded.
    fn admit(&self, frame: RawFrame, connection: &Arc<Connection>) -> Option<RawFrame> {
        connection.expect_answer();
        if frame.kind != FrameKind::Batch {
            return Some(frame);
        }
        let signal = self.signal.get();
        let (retry_after_ms, message) = match connection.held_for() {
            Some(left) => {
                let left_ms = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
                (left_ms, "its sender has to wait: it sent too many series")
            }
            None if frame.class == MessageClass::Telemetry && signal.drop_non_critical => {
                (signal.delay_ms, "the store is behind: only what can't be spared is taken")
            }
            None => return Some(frame),
        };
        self.rejections.count(connection, RejectReason::Overloaded.name());
        let seq = frame.peek_seq().unwrap_or(0);
        connection.reached(seq, 0);
        connection.reject(Reject {
            seq,
            reason: RejectReason::Overloaded,
            retry_after_ms: Some(retry_after_ms),
            signal,
            message: message.to_owned(),
        });
        None
    }
}

fn seq_of(error: &FrameError) -> Option<u64> {
    match error {
        FrameError::ClassTooHigh { seq, .. } => *seq,
        _ => None,
    }
}

// === impl Cutter ===

impl Cutter {
    fn new(protocol: Protocol, limits: FrameLimits, line_bytes_max: usize) -> Self {
        match protocol {
            Protocol::Frames => Self::Frames(Reassembler::new(limits)),
            Protocol::Lines => Self::Lines(LineCutter::new(line_bytes_max)),
        }
    }

    fn held_bytes(&self) -> usize {
        match self {
            Self::Frames(frames) => frames.held_bytes(),
            Self::Lines(lines) => lines.held_bytes(),
        }
    }
}
