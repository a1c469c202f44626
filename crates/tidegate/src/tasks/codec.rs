//! Encoding of tasks. Later versions read the output of earlier ones: unknown JSON fields are skipped and missing
//! ones have a default, and everything else begins with the number of its
//! format.

use super::bounds::{OUTPUT_BYTES_MAX, SPEC_BYTES_MAX, STATE_BYTES_MAX, check_bytes};
use crate::storage::StoreError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tidegate_core::task::{OutputChunk, OutputStream, TaskId, TaskSpec, TaskState, TaskStatus};

/// The format of an output.
const OUTPUT: u8 = 1;

/// Adds a state's text to what is written before it.
pub(super) fn write_state(
    id: &TaskId,
    state: &TaskState,
    to: Vec<u8>,
) -> Result<Vec<u8>, StoreError> {
    write_json(id, "state", state, to, STATE_BYTES_MAX)
}

/// Adds a spec's text to what is written before it.
pub(super) fn write_spec(id: &TaskId, spec: &TaskSpec, to: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    write_json(id, "spec", spec, to, SPEC_BYTES_MAX)
}

fn write_json(
    id: &TaskId,
    what: &str,
    value: &impl Serialize,
    mut to: Vec<u8>,
    bytes_max: usize,
) -> Result<Vec<u8>, StoreError> {
    serde_json::to_writer(&mut to, value)
        .map_err(|error| StoreError::Refused(format!("task {id}: its {what}: {error}")))?;
    check_bytes(id, what, to.len(), bytes_max)?;
    Ok(to)
}

/// A state from its text.
pub(super) fn read_state(id: &TaskId, bytes: &[u8]) -> Result<TaskState, StoreError> {
    read_json(id, "state", bytes)
}

/// A spec from its text.
pub(super) fn read_spec(id: &TaskId, bytes: &[u8]) -> Result<TaskSpec, StoreError> {
    read_json(id, "spec", bytes)
}

fn read_json<T: DeserializeOwned>(id: &TaskId, what: &str, bytes: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(bytes).map_err(|error| damaged(id, what, &error))
}

/// Encodes the output of a task: for each chunk a byte for the stream, four for the length (big-endian), the text.
pub(super) fn write_output(id: &TaskId, chunks: &[OutputChunk]) -> Result<Vec<u8>, StoreError> {
    let texts: usize = chunks.iter().map(|chunk| chunk.text.len()).sum();
    let mut bytes = Vec::with_capacity(1 + texts + 5 * chunks.len());
    bytes.push(OUTPUT);
    for chunk in chunks {
        bytes.push(match chunk.stream {
            OutputStream::Stdout => 1,
            OutputStream::Stderr => 2,
        });
        let length = u32::try_from(chunk.text.len()).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(chunk.text.as_bytes());
    }
    // Also what was cut into a great many chunks must fit.
    check_bytes(id, "output", bytes.len(), 2 * OUTPUT_BYTES_MAX)?;
    Ok(bytes)
}

/// Decodes the output of a task.
pub(super) fn read_output(id: &TaskId, bytes: &[u8]) -> Result<Vec<OutputChunk>, StoreError> {
    let wrong = |what: &str| damaged(id, "output", &what);
    let mut rest = match bytes.split_first() {
        Some((&OUTPUT, rest)) => rest,
        _ => return Err(wrong("its format is not known")),
    };
    let mut chunks = Vec::new();
    while let Some((stream, after)) = rest.split_first() {
        let stream = match stream {
            1 => OutputStream::Stdout,
            2 => OutputStream::Stderr,
            _ => return Err(wrong("a stream is not known")),
        };
        let (length, after) = after.split_first_chunk().ok_or_else(|| wrong("it is cut"))?;
        let length = u32::from_be_bytes(*length) as usize;
        let (text, after) = after.split_at_checked(length).ok_or_else(|| wrong("it is cut"))?;
        let text = std::str::from_utf8(text).map_err(|error| damaged(id, "output", &error))?;
        chunks.push(OutputChunk { stream, text: text.to_owned() });
        rest = after;
    }
    Ok(chunks)
}

/// A status as a number of the store: its place in [`TaskStatus::ALL`].
pub(super) fn status_code(status: TaskStatus) -> u8 {
    status as u8
}

/// The status of such a number.
pub(super) fn status_of(code: u8) -> Option<TaskStatus> {
    TaskStatus::ALL.get(usize::from(code)).copied()
}

/// A record that can't be read.
pub(super) fn damaged(id: &TaskId, what: &str, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unusable(format!(
        "the {what} of task {id} is damaged or of a newer version ({error}): restore a copy of the store"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id() -> TaskId {
        TaskId::new("nightly-7").unwrap()
    }

    fn chunk(stream: OutputStream, text: &str) -> OutputChunk {
        OutputChunk { stream, text: text.to_owned() }
    }

    #[test]
    fn what_the_first_version_wrote_is_still_read() {
        let state =
            br#"{"version":3,"status":"failed","owner":"m","attempt":1,"failures":1,"losses":0,
            "submitted_ms":5,"queued_ms":6,"of_a_later_version":[1],
            "ending":{"outcome":"failed","reason":"exit","ran_ms":7}}"#;
        let state = read_state(&id(), state).unwrap();
        assert_eq!((state.version, state.status), (3, TaskStatus::Failed));
        assert_eq!((state.assignment, state.cancel_requested, state.ended_ms), (None, false, None));
        let running =
            br#"{"version":2,"status":"running","owner":"m","attempt":1,"failures":0,"losses":0,
            "submitted_ms":5,"queued_ms":6,"placed":{"executor":"e"},"cancel_asked":true}"#;
        let state = read_state(&id(), running).unwrap();
        assert!(state.cancel_requested && state.assignment.is_some());
        let spec = br#"{"runtime":"sh","code":"true","priority":"normal","timeout_ms":9,"retries":2,"new":{}}"#;
        let spec = read_spec(&id(), spec).unwrap();
        assert_eq!((spec.code.as_str(), spec.retries, spec.args.len()), ("true", 2, 0));
        let output = b"\x01\x01\x00\x00\x00\x02hi\x02\x00\x00\x00\x00";
        let chunks = [chunk(OutputStream::Stdout, "hi"), chunk(OutputStream::Stderr, "")];
        assert_eq!(read_output(&id(), output).unwrap(), chunks);
        assert_eq!(write_output(&id(), &chunks).unwrap(), output);
    }

    #[test]
    fn statuses_keep_their_numbers() {
        let names = ["queued", "provisioning", "running", "succeeded", "failed", "cancelled"];
        for (code, name) in (0_u8..).zip(names) {
            let status = TaskStatus::from_name(name).unwrap();
            assert_eq!((status_code(status), status_of(code)), (code, Some(status)));
        }
        assert_eq!(status_of(6), None);
    }

    #[test]
    fn what_is_damaged_names_its_task() {
        for error in [
            read_state(&id(), b"{\"version\":1,").unwrap_err(),
            read_spec(&id(), b"").unwrap_err(),
            read_output(&id(), b"\x09").unwrap_err(),
            read_output(&id(), b"\x01\x01\x00\x00\x00\x05hi").unwrap_err(),
            read_output(&id(), b"\x01\x03").unwrap_err(),
            read_output(&id(), b"\x01\x01\x00\x00\x00\x01\xff").unwrap_err(),
        ] {
            assert!(matches!(&error, StoreError::Unusable(text) if text.contains("nightly-7")));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = read_output(&id(), &bytes);
            let _ = read_state(&id(), &bytes);
        }
    }
}
