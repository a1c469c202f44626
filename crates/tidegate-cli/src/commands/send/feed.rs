use super::lines::Parsed;
use super::pace::Pace;
use super::source::Piece;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use tidegate::client::{ClientError, ClientSendError, IngestClient};
use tidegate::usage::UsageRecord;
use tokio::sync::mpsc;

/// Counts of the input so far.
#[derive(Default)]
pub struct InputStats {
    pub bytes: u64,
    pub lines: u64,
    pub lines_wrong: u64,
    /// Messages about invalid lines, not shown yet.
    pub wrong: Vec<String>,
}

/// End of the input.
#[derive(Debug)]
pub enum InputEnd {
    /// All records were read and accepted by the client.
    All,
    /// An invalid line ended the input (`--strict`).
    Strict,
    /// The file changed after its digest was computed.
    Changed,
    /// The input can't be read further.
    Unreadable(io::Error),
    /// The client has ended.
    Ended(ClientError),
}

/// Passes parsed records to a client.
pub struct Feed {
    pub client: Rc<IngestClient>,
    pub stats: Rc<RefCell<InputStats>>,
    pub pace: Option<Pace>,
    /// Stops at the first invalid line.
    pub strict: bool,
}

// === impl Feed ===

impl Feed {
    /// Runs until the input or the client ends.
    pub async fn run(mut self, mut pieces: mpsc::Receiver<Piece>) -> InputEnd {
        while let Some(piece) = pieces.recv().await {
            let parsed = match piece {
                Piece::Parsed(parsed) => parsed,
                Piece::End { changed: true } => return InputEnd::Changed,
                Piece::End { changed: false } => return InputEnd::All,
                Piece::Failed(error) => return InputEnd::Unreadable(error),
            };
            let stop = self.strict && parsed.lines_wrong > 0;
            let records = self.stats.borrow_mut().take(parsed, stop);
            if let Err(error) = self.send(&records).await {
                return InputEnd::Ended(error);
            }
            if stop {
                return InputEnd::Strict;
            }
        }
        InputEnd::Unreadable(io::ErrorKind::UnexpectedEof.into())
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
                ClientSendError::Ended(error) => return Err(error),
                ClientSendError::Refused(fault) => {
                    self.stats.borrow_mut().refuse(format!("a record can't be sent: {fault}"));
                    left = &left[stopped.taken + 1..];
                }
            }
        }
        Ok(())
    }
}

// === impl InputStats ===

impl InputStats {
    /// Counts a piece and returns its records; with `until_wrong` those before its first invalid line.
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
