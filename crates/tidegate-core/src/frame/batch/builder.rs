use super::name_table::NameTable;
use crate::admission::MessageClass;
use crate::frame::cbor::{CborWriter, head_bytes, header, write_quantity};
use crate::frame::error::{NameFault, RecordFault};
use crate::frame::kind::{FrameKind, HEADER_BYTES};
use crate::frame::limits::{FrameLimits, LABELS_BYTES_MAX, NAME_BYTES_MAX};
use crate::frame::text::check_text;
use crate::usage::UsageRecord;
use bytes::Bytes;
use std::fmt;
use std::sync::Arc;

/// The array head, and the two numbers before the names: the number of the batch is known only at the end.
const BEFORE_NAMES_BYTES: usize = 1 + 9 + 9;

/// Builder of batch frames: collects records until one does not fit.
///
/// Reusable for one batch after the other; it keeps its buffers.
#[derive(Debug)]
pub struct BatchBuilder {
    limits: FrameLimits,
    table: NameTable,
    /// Encoded names and records, each without the head of its array.
    names: Vec<u8>,
    records: Vec<u8>,
    count: usize,
}

/// Reason why a record was not added to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchPushError {
    /// The batch is full: finish it, and add the record to the next one.
    Full,
    /// No receiver accepts the record: a name is too long, empty, or contains a control character.
    Refused(RecordFault),
}

/// Lengths of the buffers before a record.
#[derive(Clone, Copy)]
struct Mark {
    table: usize,
    names: usize,
    records: usize,
}

// === impl BatchBuilder ===

impl BatchBuilder {
    /// Creates an empty builder. The limits are those of the receiver's hello.
    #[must_use]
    pub fn new(limits: FrameLimits) -> Self {
        Self {
            limits,
            table: NameTable::default(),
            names: Vec::new(),
            records: Vec::new(),
            count: 0,
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    ///
    /// If the record does not fit, or can't be sent at all. The batch is unchanged.
    pub fn push(&mut self, record: &UsageRecord) -> Result<(), BatchPushError> {
        let mark = self.mark();
        let result = self.try_push(record);
        if result.is_err() {
            self.back_to(mark);
        }
        result
    }

    /// Number of records in the batch.
    #[must_use]
    pub fn record_count(&self) -> usize {
        self.count
    }

    /// True if the batch has no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Upper bound of the frame's length, in bytes.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        HEADER_BYTES
            + BEFORE_NAMES_BYTES
            + head_bytes(self.table.len() as u64)
            + self.names.len()
            + head_bytes(self.count as u64)
            + self.records.len()
    }

    /// Returns the frame and empties the builder. The frame may be sent any number of times.
    ///
    /// Batches are numbered from 1, and `settled` is less than `seq`: a receiver refuses others.
    #[must_use]
    pub fn finish(&mut self, seq: u64, settled: u64, class: MessageClass) -> Bytes {
        let mut out = Vec::with_capacity(self.frame_bytes());
        out.extend_from_slice(&header(0, FrameKind::Batch, class));
        let mut writer = CborWriter::new(&mut out);
        writer.array(4);
        writer.unsigned(seq);
        writer.unsigned(settled);
        writer.array(self.table.len());
        writer.raw(&self.names);
        writer.array(self.count);
        writer.raw(&self.records);
        let header = header(out.len() - HEADER_BYTES, FrameKind::Batch, class);
        out[..HEADER_BYTES].copy_from_slice(&header);
        self.clear();
        out.into()
    }

    /// Empties the builder, and keeps its buffers.
    pub fn clear(&mut self) {
        self.table.clear();
        self.names.clear();
        self.records.clear();
        self.count = 0;
    }

    fn try_push(&mut self, record: &UsageRecord) -> Result<(), BatchPushError> {
        if self.count >= self.limits.batch_records_max as usize {
            return Err(BatchPushError::Full);
        }
        let tenant =
            self.name_index(&record.tenant, NAME_BYTES_MAX).map_err(RecordFault::Tenant)?;
        let meter = self.name_index(&record.meter, NAME_BYTES_MAX).map_err(RecordFault::Meter)?;
        let labels = match &record.labels {
            labels if labels.is_empty() => None,
            labels => Some(self.name_index(labels, LABELS_BYTES_MAX).map_err(RecordFault::Labels)?),
        };
        let mut writer = CborWriter::new(&mut self.records);
        writer.array(4 + usize::from(labels.is_some()));
        writer.unsigned(u64::from(tenant));
        writer.unsigned(u64::from(meter));
        write_quantity(&mut writer, record.quantity);
        writer.integer(record.time_ns);
        if let Some(labels) = labels {
            writer.unsigned(u64::from(labels));
        }
        self.count += 1;
        if self.frame_bytes() > self.limits.frame_bytes_max as usize
            || self.table.len() > self.limits.batch_names_max as usize
        {
            self.count -= 1;
            return Err(BatchPushError::Full);
        }
        Ok(())
    }

    #[inline]
    fn name_index(&mut self, name: &Arc<str>, bytes_max: usize) -> Result<u32, NameFault> {
        // A name in the table may be there as labels, whose limit is higher.
        if name.len() > bytes_max {
            return Err(NameFault::TooLong);
        }
        if let Some(index) = self.table.find(name) {
            return Ok(index);
        }
        if name.is_empty() {
            return Err(NameFault::Empty);
        }
        check_text(name, bytes_max)?;
        CborWriter::new(&mut self.names).text(name);
        Ok(self.table.add(name))
    }

    fn mark(&self) -> Mark {
        Mark { table: self.table.len(), names: self.names.len(), records: self.records.len() }
    }

    fn back_to(&mut self, mark: Mark) {
        self.table.truncate(mark.table);
        self.names.truncate(mark.names);
        self.records.truncate(mark.records);
    }
}

// === impl BatchPushError ===

impl From<RecordFault> for BatchPushError {
    fn from(fault: RecordFault) -> Self {
        Self::Refused(fault)
    }
}

impl fmt::Display for BatchPushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the batch is full: finish it and start the next"),
            Self::Refused(fault) => write!(f, "no receiver accepts this record: {fault}"),
        }
    }
}

impl std::error::Error for BatchPushError {}
