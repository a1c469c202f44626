use super::identity::Identity;
use super::lines::{LineReader, Parsed};
use crate::failure::Failure;
use crate::send_flags::SendFlags;
use bytes::Bytes;
use ring::digest::{Context, SHA256};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate::line_protocol::LineConfig;
use tokio::sync::mpsc;

/// How much is read and parsed at once.
const PIECE_BYTES: usize = 128 * 1024;

/// Pieces that are parsed ahead of being sent.
const PIECES_AHEAD: usize = 4;

/// What is sent.
pub struct Source {
    /// What messages call it.
    pub name: String,
    pub identity: Identity,
    /// How long it is, if it has an end that is known.
    pub bytes: Option<u64>,
    lines: LineConfig,
    input: Box<dyn Read + Send>,
}

/// What a source gives.
#[derive(Debug)]
pub enum Piece {
    Parsed(Parsed),
    /// All was read.
    End {
        /// It is not what it was when it was named.
        changed: bool,
    },
    /// It can't be read any further.
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
        // A file that grows is sent as long as it was at first, both times that it is read.
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

    /// Reads and parses on a thread of its own, a little ahead of what is taken.
    ///
    /// A thread and not a task: nothing can end a read from a terminal, and the process must end all the same.
    pub fn pieces(self) -> mpsc::Receiver<Piece> {
        let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
        thread::spawn(move || {
            let lines = LineReader::new(self.lines, now_ns());
            let last = read_all(self.input, lines, self.identity.content.as_deref(), &sender);
            // Nobody listens any more: then nobody asks for the end either.
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
