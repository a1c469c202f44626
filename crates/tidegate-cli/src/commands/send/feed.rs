use super::lines::Parsed;
use super::pace::Pace;
use super::source::Piece;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use tidegate::client::{ClientError, IngestClient, SendError};
use tidegate::usage::UsageRecord;
use tokio::sync::mpsc;

/// What was read so far.
#[derive(Default)]
pub struct Tally {
    pub bytes: u64,
    pub lines: u64,
    pub lines_wrong: u64,
    /// What is wrong with lines, not shown yet.
    pub wrong: Vec<String>,
}

/// How reading ended.
#[derive(Debug)]
pub enum Fed {
    /// All was read and taken.
    All,
    /// A line was wrong, and nothing behind it is wanted.
    Strict,
    /// The file is not what it was when it was named.
    Changed,
    /// It can't be read any further.
    Unreadable(io::Error),
    /// The client takes nothing any more.
    Ended(ClientError),
}

/// Hands what is read to a client.
pub struct Feed {
    pub client: Rc<IngestClient>,
    pub tally: Rc<RefCell<Tally>>,
    pub pace: Option<Pace>,
    /// Stop at the first wrong line.
    pub strict: bool,
}

// === impl Feed ===

impl Feed {
    /// Until all is read and taken, or no more is wanted.
    pub async fn run(mut self, mut pieces: mpsc::Receiver<Piece>) -> Fed {
        while let Some(piece) = pieces.recv().await {
            let parsed = match piece {
                Piece::Parsed(parsed) => parsed,
                Piece::End { changed: true } => return Fed::Changed,
                Piece::End { changed: false } => return Fed::All,
                Piece::Failed(error) => return Fed::Unreadable(error),
            };
            let stop = self.strict && parsed.lines_wrong > 0;
            let records = self.tally.borrow_mut().take(parsed, stop);
            if let Err(error) = self.send(&records).await {
                return Fed::Ended(error);
            }
            if stop {
                return Fed::Strict;
            }
        }
        Fed::Unreadable(io::ErrorKind::UnexpectedEof.into())
    }

    async fn send(&mut self, records: &[UsageRecord]) -> Result<(), ClientError> {
        let mut left = records;
        while !left.is_empty() {
            let count = match &mut self.pace {
                Some(pace) => pace.next(left.len()).await,
                None => left.len(),
            };
            let Err(stopped) = self.client.send_batch(&left[..count]).await else {
                left = &left[count..];
                continue;
            };
            match stopped.error {
                SendError::Ended(error) => return Err(error),
                SendError::Refused(fault) => {
                    self.tally.borrow_mut().refuse(format!("a record can't be sent: {fault}"));
                    left = &left[stopped.taken + 1..];
                }
            }
        }
        Ok(())
    }
}

// === impl Tally ===

impl Tally {
    /// Counts a piece, and gives its records: with `until_wrong` those before its first wrong line.
    fn take(&mut self, parsed: Parsed, until_wrong: bool) -> Vec<UsageRecord> {
        let Parsed { mut records, bytes, lines, lines_wrong, wrong, records_before_wrong } = parsed;
        self.bytes += bytes;
        self.lines += lines;
        if until_wrong {
            records.truncate(records_before_wrong.unwrap_or(records.len()));
            self.lines_wrong += 1;
            self.wrong.extend(wrong.first().map(ToString::to_string));
        } else {
            self.lines_wrong += lines_wrong;
            self.wrong.extend(wrong.iter().map(ToString::to_string));
        }
        records
    }

    fn refuse(&mut self, why: String) {
        self.lines_wrong += 1;
        self.wrong.push(why);
    }
}
