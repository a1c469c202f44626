//! Sender name and batch numbering of an input.
//!
//! The server counts a batch once by sender name and number. Data under one name must therefore be cut into the
//! same batches each time, or never be sent under that name again:
//!
//! - A file is cut by its content alone, and its sender name contains a digest of the content and the batch
//!   limits.
//!   The same bytes give the same batches; other bytes are another sender.
//! - Standard input can't be read twice. Its numbering continues.

use super::flags::SendFlags;
use super::lines::{LineReader, WrongLine};
use crate::failure::Failure;
use ring::digest::{Context, Digest, SHA256};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use tidegate::client::Numbering;
use tidegate::frame::{FrameLimits, SenderName};
use tidegate::line_protocol::LineConfig;

/// Version of the cutting; must change when the same file is cut into other batches.
const CUT_VERSION: u8 = 1;

/// Bytes of the digest in the name: 128 bits, enough to avoid collisions.
const DIGEST_BYTES: usize = 16;

/// Longest prefix that leaves room for the digest.
const NAME_BYTES_MAX: usize = SenderName::BYTES_MAX - 1 - 2 * DIGEST_BYTES;

/// Sender name and batch numbering.
#[derive(Debug)]
pub struct Identity {
    pub sender: SenderName,
    pub numbering: Numbering,
    /// Digest of the file's content.
    pub content: Option<Vec<u8>>,
}

// === impl Identity ===

impl Identity {
    /// Identity of a stream, which can be read once.
    pub fn of_stream(flags: &SendFlags) -> Result<Self, Failure> {
        let sender = match &flags.sender {
            Some(sender) => sender.clone(),
            None => {
                let random = || RandomState::new().hash_one(0_u8);
                name(format!("stdin/{:016x}{:016x}", random(), random()))?
            }
        };
        Ok(Self { sender, numbering: Numbering::Continue, content: None })
    }

    /// Identity of a file, which is read to its end. With `--strict` an invalid line is an error.
    pub fn of_file(flags: &SendFlags, file: &mut impl Read) -> Result<Self, Failure> {
        let prefix = flags.sender.as_ref().map_or("file", SenderName::as_str);
        if prefix.len() > NAME_BYTES_MAX {
            return Err(Failure::Usage(format!(
                "--sender: at most {NAME_BYTES_MAX} bytes for a file: its digest is added"
            )));
        }
        let content = content_digest(file, flags).map_err(|error| error.failure(flags))?;
        let digest = named_digest(content.as_ref(), flags.limits(), &flags.lines());
        Ok(Self {
            sender: name(format!("{prefix}/{}", hex(&digest.as_ref()[..DIGEST_BYTES])))?,
            numbering: Numbering::FromOne,
            content: Some(content.as_ref().to_vec()),
        })
    }
}

enum ReadError {
    Io(io::Error),
    Wrong(WrongLine),
}

// === impl ReadError ===

impl ReadError {
    fn failure(self, flags: &SendFlags) -> Failure {
        let shown = flags.file.display();
        Failure::Runtime(match self {
            Self::Io(error) => format!("can't read {shown}: {error}"),
            Self::Wrong(wrong) => format!("{shown}: {wrong}; nothing was sent"),
        })
    }
}

fn content_digest(file: &mut impl Read, flags: &SendFlags) -> Result<Digest, ReadError> {
    let mut context = Context::new(&SHA256);
    let mut lines = LineReader::new(flags.lines(), 0);
    let mut chunk = vec![0; 256 * 1024];
    loop {
        let read = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(ReadError::Io(error)),
        };
        context.update(&chunk[..read]);
        if flags.strict {
            let parsed = lines.read(chunk[..read].to_vec().into());
            parsed.wrong.into_iter().next().map_or(Ok(()), |wrong| Err(ReadError::Wrong(wrong)))?;
        }
    }
    if flags.strict {
        let parsed = lines.finish();
        parsed.wrong.into_iter().next().map_or(Ok(()), |wrong| Err(ReadError::Wrong(wrong)))?;
    }
    Ok(context.finish())
}

/// Digest of content, parser settings and batch limits.
fn named_digest(content: &[u8], limits: FrameLimits, lines: &LineConfig) -> Digest {
    let mut context = Context::new(&SHA256);
    let FrameLimits { frame_bytes_max, batch_records_max, batch_names_max } = limits;
    context.update(&[CUT_VERSION]);
    for limit in [frame_bytes_max, batch_records_max, batch_names_max] {
        context.update(&limit.to_be_bytes());
    }
    context.update(lines.precision.name().as_bytes());
    context.update(&[0]);
    context.update(lines.tenant_tag.as_bytes());
    context.update(&[0]);
    context.update(content);
    context.finish()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn name(text: String) -> Result<SenderName, Failure> {
    text.parse().map_err(|error| Failure::Usage(format!("--sender: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_from_the_content_and_the_cuts() {
        let limits = FrameLimits::default();
        let other = FrameLimits { batch_records_max: 7, ..limits };
        let lines = LineConfig::default();
        let digest = |content: &[u8], limits| hex(named_digest(content, limits, &lines).as_ref());
        assert_eq!(digest(b"a", limits), digest(b"a", limits));
        assert_ne!(digest(b"a", limits), digest(b"b", limits));
        assert_ne!(digest(b"a", limits), digest(b"a", other));
    }
}
