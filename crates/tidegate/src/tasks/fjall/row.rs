//! Keys and headers of the rows in each keyspace.

use crate::storage::StoreError;
use crate::tasks::codec::{self, damaged, status_code, status_of};
use crate::tasks::{Change, NewTask};
use tidegate_core::task::{TaskId, TaskSpec, TaskState, TaskStatus};

/// The formats of states and specs.
const STATE: u8 = 1;
const SPEC: u8 = 1;

/// Format, number, version and status; then the state's text.
const STATE_HEAD: usize = 1 + 8 + 8 + 1;

/// Format, fingerprint and the key's length; then the key and the spec's text.
const SPEC_HEAD: usize = 1 + 16 + 2;

/// Header of a state: enough for decisions without decoding the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Its place in the order of submission.
    pub(super) seq: u64,
    pub(super) version: u64,
    pub(super) status: TaskStatus,
}

/// A state that is to be kept.
#[derive(Debug)]
pub(super) struct StateRow {
    pub(super) version: u64,
    pub(super) status: TaskStatus,
    /// When it ended, if it is over.
    pub(super) ended_ms: u64,
    pub(super) client: Option<Box<str>>,
    bytes: Vec<u8>,
}

/// A task that is to be kept, as far as it can be made ready by whoever submits it.
#[derive(Debug)]
pub(super) struct NewRow {
    pub(super) id: TaskId,
    pub(super) key: Option<Box<str>>,
    pub(super) fingerprint: [u8; 16],
    pub(super) spec: Vec<u8>,
    pub(super) state: StateRow,
}

/// A step that is to be kept.
#[derive(Debug)]
pub(super) struct StepRow {
    pub(super) id: TaskId,
    pub(super) state: StateRow,
    pub(super) output: Option<Vec<u8>>,
}

/// Header of a specification.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SpecHead<'a> {
    pub(super) fingerprint: [u8; 16],
    pub(super) key: Option<&'a str>,
    text: &'a [u8],
}

// === impl Mark ===

impl Mark {
    pub(super) fn read(id: &TaskId, bytes: &[u8]) -> Result<Self, StoreError> {
        let mark = || {
            let (format, rest) = bytes.split_first()?;
            let (seq, rest) = rest.split_first_chunk()?;
            let (version, rest) = rest.split_first_chunk()?;
            let status = status_of(*rest.first()?)?;
            let (seq, version) = (u64::from_be_bytes(*seq), u64::from_be_bytes(*version));
            (*format == STATE).then_some(Self { seq, version, status })
        };
        mark().ok_or_else(|| damaged(id, "state", &"its beginning is not known"))
    }
}

// === impl StateRow ===

impl StateRow {
    pub(super) fn new(id: &TaskId, state: &TaskState) -> Result<Self, StoreError> {
        let mut head = Vec::with_capacity(512);
        head.push(STATE);
        head.extend_from_slice(&[0; 8]);
        head.extend_from_slice(&state.version.to_be_bytes());
        head.push(status_code(state.status));
        Ok(Self {
            version: state.version,
            status: state.status,
            ended_ms: state.ended_ms.unwrap_or(state.submitted_ms),
            client: state.client.clone(),
            bytes: codec::write_state(id, state, head)?,
        })
    }

    /// Its bytes, once its place is known.
    pub(super) fn into_bytes(mut self, seq: u64) -> Vec<u8> {
        if let Some(place) = self.bytes.get_mut(1..9) {
            place.copy_from_slice(&seq.to_be_bytes());
        }
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

pub(super) fn read_state(id: &TaskId, bytes: &[u8]) -> Result<TaskState, StoreError> {
    Mark::read(id, bytes)?;
    codec::read_state(id, bytes.get(STATE_HEAD..).unwrap_or_default())
}

// === impl NewRow ===

impl NewRow {
    pub(super) fn new(task: NewTask) -> Result<Self, StoreError> {
        let NewTask { record, key, fingerprint } = task;
        let key_bytes = key.as_deref().unwrap_or_default().as_bytes();
        let mut head = Vec::with_capacity(SPEC_HEAD + 320 + record.spec.bytes());
        head.push(SPEC);
        head.extend_from_slice(&fingerprint);
        // At most 256: the caller has looked.
        head.extend_from_slice(&(key_bytes.len() as u16).to_be_bytes());
        head.extend_from_slice(key_bytes);
        let spec = codec::write_spec(&record.id, &record.spec, head)?;
        let state = StateRow::new(&record.id, &record.state)?;
        Ok(Self { id: record.id, key, fingerprint, spec, state })
    }
}

// === impl StepRow ===

impl StepRow {
    pub(super) fn new(change: &Change) -> Result<Self, StoreError> {
        let state = StateRow::new(&change.id, &change.state)?;
        let output = change.output.as_ref().map(|chunks| codec::write_output(&change.id, chunks));
        Ok(Self { id: change.id.clone(), state, output: output.transpose()? })
    }
}

// === impl SpecHead ===

impl<'a> SpecHead<'a> {
    pub(super) fn read(id: &TaskId, bytes: &'a [u8]) -> Result<Self, StoreError> {
        let head = || {
            let (format, rest) = bytes.split_first()?;
            let (fingerprint, rest) = rest.split_first_chunk()?;
            let (length, rest) = rest.split_first_chunk()?;
            let (key, text) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            let key = std::str::from_utf8(key).ok()?;
            let key = (!key.is_empty()).then_some(key);
            (*format == SPEC).then_some(Self { fingerprint: *fingerprint, key, text })
        };
        head().ok_or_else(|| damaged(id, "spec", &"its beginning is not known"))
    }

    pub(super) fn spec(&self, id: &TaskId) -> Result<TaskSpec, StoreError> {
        codec::read_spec(id, self.text)
    }
}

/// Where a task is in the index while it is not over.
pub(super) fn live(seq: u64) -> [u8; 9] {
    key(b'l', &[], seq)
}

/// Where it is afterwards, by status.
pub(super) fn done(status: TaskStatus, seq: u64) -> [u8; 10] {
    key(b'd', &[status_code(status)], seq)
}

/// The same place once more, among the tasks of one client, whose name has no NUL.
pub(super) fn of_client(client: &str, place: &[u8]) -> Vec<u8> {
    [b"c", client.as_bytes(), b"\0", place].concat()
}

/// Where it is afterwards, by when it ended.
pub(super) fn ended(ended_ms: u64, seq: u64) -> [u8; 17] {
    key(b'e', &ended_ms.to_be_bytes(), seq)
}

/// When a task ended, and its place, from its key in the index.
pub(super) fn read_ended(key: &[u8]) -> Option<(u64, u64)> {
    let (ended_ms, seq) = key.strip_prefix(b"e")?.split_first_chunk()?;
    Some((u64::from_be_bytes(*ended_ms), u64::from_be_bytes(seq.try_into().ok()?)))
}

/// A task's place, which every key of the index ends with.
pub(super) fn read_seq(key: &[u8]) -> Option<u64> {
    key.last_chunk().map(|seq| u64::from_be_bytes(*seq))
}

fn key<const BYTES: usize>(kind: u8, middle: &[u8], seq: u64) -> [u8; BYTES] {
    let mut key = [0; BYTES];
    let bytes = std::iter::once(kind).chain(middle.iter().copied()).chain(seq.to_be_bytes());
    key.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id() -> TaskId {
        TaskId::new("nightly-7").unwrap()
    }

    /// As the first version wrote it.
    const SAMPLE: &[u8] =
        b"\x01\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x03\x02{\"version\":3,\"status\":\"running\",\"owner\":\"m\",\
        \"attempt\":1,\"failures\":0,\"losses\":0,\"submitted_ms\":5,\"queued_ms\":6,\"later\":null}";

    #[test]
    fn a_state_of_the_first_version_is_read() {
        let mark = Mark { seq: 5, version: 3, status: TaskStatus::Running };
        assert_eq!(Mark::read(&id(), SAMPLE), Ok(mark));
        let state = read_state(&id(), SAMPLE).unwrap();
        assert_eq!((state.version, &*state.owner), (3, "m"));
        let again = StateRow::new(&id(), &state).unwrap().into_bytes(5);
        assert_eq!(Mark::read(&id(), &again), Ok(mark));
        assert_eq!(read_state(&id(), &again), Ok(state));
    }

    #[test]
    fn other_formats_and_cut_records_name_their_task() {
        let mut newer = SAMPLE.to_vec();
        newer[0] = 2;
        for bytes in [&newer[..], &SAMPLE[..9], &SAMPLE[..40], b""] {
            let error = read_state(&id(), bytes).unwrap_err();
            assert!(matches!(&error, StoreError::Unusable(text) if text.contains("nightly-7")));
        }
    }

    #[test]
    fn keys_of_the_index_sort_by_place_and_say_it() {
        assert!(live(1) < live(256) && done(TaskStatus::Failed, 9) < done(TaskStatus::Failed, 10));
        assert!(ended(1, 900) < ended(2, 1));
        assert_eq!(read_ended(&ended(7, 9)), Some((7, 9)));
        assert_eq!((read_seq(&live(3)), read_ended(&live(3))), (Some(3), None));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = (Mark::read(&id(), &bytes), SpecHead::read(&id(), &bytes));
            let _ = (read_state(&id(), &bytes), read_ended(&bytes), read_seq(&bytes));
        }
    }
}
