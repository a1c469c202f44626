use crate::admission::MessageClass;
use crate::frame::cbor::{CborReader, read_quantity};
use crate::frame::error::{FrameError, NameFault, RecordFault};
use crate::frame::kind::FrameKind;
use crate::frame::limits::{FrameLimits, LABELS_BYTES_MAX, NAME_BYTES_MAX};
use crate::frame::raw::RawFrame;
use crate::frame::text::check_text;
use crate::usage::{Names, UsageRecord};
use std::sync::Arc;

/// Records that are sent, stored and acknowledged together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Number given by the sender, from 1.
    pub seq: u64,
    /// Number up to which the sender will send no batch again. Less than `seq`.
    pub settled: u64,
    /// Class of the batch: data, or telemetry.
    pub class: MessageClass,
    /// Records. An empty batch only reports what is settled.
    pub records: Vec<UsageRecord>,
}

// === impl Batch ===

impl Batch {
    /// Decodes a batch, all of it or nothing.
    ///
    /// Names cached in `names` are shared with earlier batches.
    ///
    /// # Errors
    ///
    /// If the frame is no batch, or its body is malformed. [`RawFrame::peek_seq`] still returns the batch's
    /// number, if it is readable.
    pub fn decode(
        frame: &RawFrame,
        limits: &FrameLimits,
        names: &mut Names,
    ) -> Result<Self, FrameError> {
        frame.must_be(FrameKind::Batch)?;
        let mut reader = CborReader::new(&frame.body);
        reader.array_of(4, "a batch: an array of 4")?;
        let seq = reader.unsigned("the number of the batch")?;
        let settled = reader.unsigned("up to which number all is settled")?;
        if seq <= settled {
            return Err(FrameError::BadSeq { seq, settled });
        }
        let table = read_names(&mut reader, limits, names)?;
        let records = read_records(&mut reader, limits, &table, &names.get(""))?;
        reader.end()?;
        Ok(Self { seq, settled, class: frame.class, records })
    }
}

fn read_names(
    reader: &mut CborReader<'_>,
    limits: &FrameLimits,
    names: &mut Names,
) -> Result<Vec<Arc<str>>, FrameError> {
    let count = reader.array("names: an array of text")?;
    let max = limits.batch_names_max;
    if count > u64::from(max) {
        return Err(FrameError::TooManyNames { given: count, max });
    }
    let mut table = Vec::with_capacity(count as usize);
    for index in 0..count as u32 {
        let name = reader.text("a name, as text")?;
        if let Err(fault) = check_text(name, LABELS_BYTES_MAX) {
            return Err(FrameError::BadName { index, fault });
        }
        table.push(names.get(name));
    }
    Ok(table)
}

fn read_records(
    reader: &mut CborReader<'_>,
    limits: &FrameLimits,
    table: &[Arc<str>],
    empty: &Arc<str>,
) -> Result<Vec<UsageRecord>, FrameError> {
    let count = reader.array("records: an array of arrays")?;
    let max = limits.batch_records_max;
    if count > u64::from(max) {
        return Err(FrameError::TooManyRecords { given: count, max });
    }
    let mut records = Vec::with_capacity(count as usize);
    for index in 0..count as u32 {
        match read_record(reader, table, empty) {
            Ok(record) => records.push(record),
            Err(fault) => return Err(FrameError::BadRecord { index, fault }),
        }
    }
    Ok(records)
}

#[inline]
fn read_record(
    reader: &mut CborReader<'_>,
    table: &[Arc<str>],
    empty: &Arc<str>,
) -> Result<UsageRecord, RecordFault> {
    let items = reader.array("").map_err(|_| RecordFault::Shape)?;
    if !(4..=5).contains(&items) {
        return Err(RecordFault::Shape);
    }
    let tenant = check_name(read_name(reader, table)?).map_err(RecordFault::Tenant)?;
    let meter = check_name(read_name(reader, table)?).map_err(RecordFault::Meter)?;
    let quantity = read_quantity(reader)?;
    let time_ns = reader.integer("").map_err(|_| RecordFault::Time)?;
    let labels = if items == 5 { read_name(reader, table)? } else { empty };
    Ok(UsageRecord {
        tenant: Arc::clone(tenant),
        meter: Arc::clone(meter),
        quantity,
        time_ns,
        labels: Arc::clone(labels),
    })
}

#[inline]
fn read_name<'t>(
    reader: &mut CborReader<'_>,
    table: &'t [Arc<str>],
) -> Result<&'t Arc<str>, RecordFault> {
    let index = reader.unsigned("").map_err(|_| RecordFault::Shape)?;
    usize::try_from(index).ok().and_then(|index| table.get(index)).ok_or(RecordFault::NoSuchName)
}

/// Checks that a text of the table is valid as a tenant or a meter; the checks of all texts have been made.
#[inline]
fn check_name(name: &Arc<str>) -> Result<&Arc<str>, NameFault> {
    match name.len() {
        0 => Err(NameFault::Empty),
        1..=NAME_BYTES_MAX => Ok(name),
        _ => Err(NameFault::TooLong),
    }
}
