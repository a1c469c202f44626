//! Under what name something is sent.
//!
//! The server counts a batch once by its sender's name and its number. So whatever is sent under a name must be
//! cut into the same batches each time, or must never be sent under that name again:
//!
//! - A file is cut by its content alone, and its name has a digest of that content and of where batches are cut.
//!   The same bytes are the same batches, wherever the file lies and whenever it is sent; other bytes are another
//!   sender.
//! - Standard input can't be read twice. Its numbers go on from those that were used before.

use super::lines::{LineReader, WrongLine};
use crate::failure::Failure;
use crate::send_flags::SendFlags;
use ring::digest::{Context, Digest, SHA256};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use tidegate::client::Numbering;
use tidegate::frame::{FrameLimits, SenderName};
use tidegate::line_protocol::LineConfig;

/// To be raised when the same file would be cut into other batches than before.
const CUT_VERSION: u8 = 1;

/// As much of a digest as no two files will ever share: 128 bits.
const DIGEST_BYTES: usize = 16;

/// The longest name that leaves room for a digest.
const NAME_BYTES_MAX: usize = SenderName::BYTES_MAX - 1 - 2 * DIGEST_BYTES;

/// Who sends, and how its batches are numbered.
#[derive(Debug)]
pub struct Identity {
    pub sender: SenderName,
    pub numbering: Numbering,
    /// What was in the file when it was named.
    pub content: Option<Vec<u8>>,
}

// === impl Identity ===

impl Identity {
    /// Of what can be read once only.
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

    /// Of a file, which is read to its end. With `strict` it must not have a wrong line.
    pub fn of_file(flags: &SendFlags, file: &mut impl Read) -> Result<Self, Failure> {
        let prefix = flags.sender.as_ref().map_or("file", SenderName::as_str);
        if prefix.len() > NAME_BYTES_MAX {
            return Err(Failure::Usage(format!(
                "--sender: at most {NAME_BYTES_MAX} bytes for a file: its digest is added"
            )));
        }
        let content = read_through(file, flags).map_err(|error| error.failure(flags))?;
        let digest = named_digest(content.as_ref(), flags.limits(), &flags.lines());
        Ok(Self {
            sender: name(format!("{prefix}/{}", hex(&digest.as_ref()[..DIGEST_BYTES])))?,
            numbering: Numbering::FromOne,
            content: Some(content.as_ref().to_vec()),
        })
    }
}

enum Unread {
    Io(io::Error),
    Wrong(WrongLine),
}

// === impl Unread ===

impl Unread {
    fn failure(self, flags: &SendFlags) -> Failure {
        let shown = flags.file.display();
        Failure::Runtime(match self {
            Self::Io(error) => format!("can't read {shown}: {error}"),
            Self::Wrong(wrong) => format!("{shown}: {wrong}; nothing was sent"),
        })
    }
}

fn read_through(file: &mut impl Read, flags: &SendFlags) -> Result<Digest, Unread> {
    let mut context = Context::new(&SHA256);
    let mut lines = LineReader::new(flags.lines(), 0);
    let mut chunk = vec![0; 256 * 1024];
    loop {
        let read = match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Unread::Io(error)),
        };
        context.update(&chunk[..read]);
        if flags.strict {
            let parsed = lines.read(chunk[..read].to_vec().into());
            parsed.wrong.into_iter().next().map_or(Ok(()), |wrong| Err(Unread::Wrong(wrong)))?;
        }
    }
    if flags.strict {
        let parsed = lines.finish();
        parsed.wrong.into_iter().next().map_or(Ok(()), |wrong| Err(Unread::Wrong(wrong)))?;
    }
    Ok(context.finish())
}

/// The digest of a content, of how it is read and of where it is cut.
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
