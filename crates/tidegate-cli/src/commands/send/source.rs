use super::flags::SendFlags;
use super::identity::Identity;
use super::lines::{LineReader, Parsed};
use crate::failure::Failure;
use bytes::Bytes;
use ring::digest::{Context, SHA256};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate::line_protocol::LineConfig;
use tokio::sync::mpsc;

/// Bytes that are read and parsed at once.
const PIECE_BYTES: usize = 128 * 1024;

/// Parsed pieces that wait for sending.
const PIECES_AHEAD: usize = 4;

/// Input: a file or a stream.
pub struct Source {
    /// Name in messages.
    pub name: String,
    pub identity: Identity,
    /// Length, if it is known.
    pub bytes: Option<u64>,
    lines: LineConfig,
    input: Box<dyn Read + Send>,
}

/// Element of an input.
#[derive(Debug)]
pub enum Piece {
    Parsed(Parsed),
    /// End of the input.
    End {
        /// The file changed after its digest was computed.
        changed: bool,
    },
    /// The input can't be read further.
    Failed(io::Error),
}

// === impl Source ===

impl Source {
    pub fn open(flags: &SendFlags) -> Result<Self, Failure> {
        if flags.is_stdin() {
            return Self::stream("standard input".to_owned(), flags, Box::new(io::stdin()));
        }
        let name = flags.file.display().to_string();
        let usage = |error: io::Error| Failure::Usage(format!("can't read {name}: {error}"));
        let mut file = File::open(&flags.file).map_err(usage)?;
        let about = file.metadata().map_err(usage)?;
        if about.is_dir() {
            return Err(Failure::Usage(format!("can't read {name}: it is a folder")));
        }
        if !about.is_file() {
            return Self::stream(name, flags, Box::new(file));
        }
        // Both reads of a growing file end at its first length.
        let length = about.len();
        let identity = Identity::of_file(flags, &mut (&file).take(length))?;
        file.rewind().map_err(usage)?;
        let (bytes, input) = (Some(length), Box::new(file.take(length)));
        Ok(Self { name, identity, bytes, lines: flags.lines(), input })
    }

    fn stream(
        name: String,
        flags: &SendFlags,
        input: Box<dyn Read + Send>,
    ) -> Result<Self, Failure> {
        let identity = Identity::of_stream(flags)?;
        Ok(Self { name, identity, bytes: None, lines: flags.lines(), input })
    }

    /// Reads and parses on a separate thread, ahead of sending.
    ///
    /// A thread, not a task: a read from a terminal can't be cancelled, and the process must be able to end.
    pub fn pieces(self) -> mpsc::Receiver<Piece> {
        let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
        thread::spawn(move || {
            let lines = LineReader::new(self.lines, now_ns());
            let last = read_all(self.input, lines, self.identity.content.as_deref(), &sender);
            // The receiver may be gone.
            let _ = sender.blocking_send(last);
        });
        receiver
    }
}

fn read_all(
    mut input: Box<dyn Read + Send>,
    mut lines: LineReader,
    expected: Option<&[u8]>,
    sender: &mpsc::Sender<Piece>,
) -> Piece {
    let mut digest = Context::new(&SHA256);
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        match input.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => piece.truncate(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Piece::Failed(error),
        }
        if expected.is_some() {
            digest.update(&piece);
        }
        if sender.blocking_send(Piece::Parsed(lines.read(Bytes::from(piece)))).is_err() {
            break;
        }
    }
    let _ = sender.blocking_send(Piece::Parsed(lines.finish()));
    let found = digest.finish();
    Piece::End { changed: expected.is_some_and(|expected| found.as_ref() != expected) }
}

fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}
