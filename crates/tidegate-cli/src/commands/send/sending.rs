use super::connector::TlsConnector;
use super::feed::{Feed, InputEnd, InputStats};
use super::flags::SendFlags;
use super::lines::SHOWN_MAX;
use super::pace::Pace;
use super::progress::Progress;
use super::source::Source;
use super::summary::Report;
use crate::failure::Failure;
use crate::shutdown::Signals;
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tidegate::client::{
    ClientConfig, ClientError, IngestClient, Numbering, RejectCause, RejectedBatch, Rejections,
    Summary,
};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Grace time for batches in flight at an early end.
const GRACE: Duration = Duration::from_secs(5);

/// One run of `tidegate send`.
pub struct Sending<'a> {
    flags: &'a SendFlags,
    client: Rc<IngestClient>,
    rejections: Rejections,
    signals: Signals,
    progress: Progress,
    tick: Interval,
    stats: Rc<RefCell<InputStats>>,
    source: String,
    /// Invalid lines and rejected batches that were shown.
    shown: usize,
    /// Allows a partial batch. Not in the middle of a file: the server would take it for the whole batch.
    allow_partial_batch: bool,
    /// Time of the last progress, and the records settled by then.
    last_progress: (Instant, u64),
}

/// End of a run.
#[derive(Debug)]
pub enum Ended {
    /// All records were read and settled.
    Done,
    /// The run ended early, with the reason.
    Early(String),
}

/// End of one step of a run.
enum StepEnd<T> {
    Done(T),
    /// A signal arrived.
    Interrupted,
    /// Nothing was stored within `--timeout`.
    Stuck,
}

// === impl Sending ===

impl<'a> Sending<'a> {
    pub fn start(flags: &'a SendFlags, source: &Source, signals: Signals) -> Result<Self, Failure> {
        let identity = &source.identity;
        let mut config = ClientConfig::new(identity.sender.clone());
        config.numbering = identity.numbering;
        config.batch = flags.limits();
        if let Some(token) = &flags.token {
            let token = token.of_sender();
            config.token = token.map_err(|error| Failure::Usage(format!("--token: {error}")))?;
        }
        if identity.numbering == Numbering::FromOne {
            // No linger: batches are cut by content alone, so that the same file gives the same batches.
            config.linger = None;
        }
        let connected = match flags.tls || flags.tls_files.is_given() {
            true => {
                let connector = TlsConnector::new(&flags.to, &flags.tls_files)?;
                IngestClient::connect_by(connector, config)
            }
            false => IngestClient::connect(flags.to.as_str(), config),
        };
        let (client, rejections) = connected.map_err(|error| Failure::Usage(error.to_string()))?;
        let mut tick = interval(Duration::from_millis(100));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            flags,
            client: Rc::new(client),
            rejections,
            signals,
            progress: Progress::new(flags.quiet, source.bytes, &flags.to),
            tick,
            stats: Rc::default(),
            source: source.name.clone(),
            shown: 0,
            allow_partial_batch: identity.numbering == Numbering::Continue,
            last_progress: (Instant::now(), 0),
        })
    }

    /// Reads, sends and waits until all records are settled, or ends early.
    pub async fn run(mut self, source: Source) -> (Report, Ended) {
        let sender = source.identity.sender.to_string();
        let (summary, ended) = self.send(source).await;
        self.update();
        while let Some(batch) = self.rejections.try_recv() {
            self.show_rejected(&batch);
        }
        self.progress.finish();
        let stats = self.stats.borrow();
        let ended = match &summary.error {
            Some(error) => Ended::Early(explained(error)),
            None => ended,
        };
        let report = Report {
            source: self.source.clone(),
            server: self.flags.to.clone(),
            sender,
            elapsed: self.progress.elapsed(),
            lines: stats.lines,
            lines_refused: stats.lines_wrong,
            summary,
        };
        (report, ended)
    }

    async fn send(&mut self, source: Source) -> (Summary, Ended) {
        let feed = Feed {
            client: Rc::clone(&self.client),
            stats: Rc::clone(&self.stats),
            pace: self.flags.rate.map(Pace::new),
            strict: self.flags.strict && source.bytes.is_none(),
        };
        let input_end = match self.watch(feed.run(source.pieces())).await {
            StepEnd::Done(input_end) => input_end,
            StepEnd::Interrupted => return self.interrupted().await,
            StepEnd::Stuck => return self.stuck().await,
        };
        let name = &self.source;
        let ended = match input_end {
            InputEnd::All => Ended::Done,
            InputEnd::Strict => {
                Ended::Early(format!("{name}: nothing after the invalid line was sent"))
            }
            InputEnd::Changed => Ended::Early(format!(
                "{name} changed while it was sent: its stored records will count again when it is sent again"
            )),
            InputEnd::Unreadable(error) => {
                let why = format!("can't read {name} to its end: {error}");
                return (self.end(GRACE).await, Ended::Early(why));
            }
            InputEnd::Ended(error) => {
                return (self.end(Duration::ZERO).await, Ended::Early(error.to_string()));
            }
        };
        let client = Rc::clone(&self.client);
        // The input is read: the last batch ends at the end of the file each time.
        self.allow_partial_batch = true;
        match self.watch(async move { client.flush().await }).await {
            // The summary contains rejected batches.
            StepEnd::Done(_) => (self.client.close(Duration::ZERO).await, ended),
            StepEnd::Interrupted => self.interrupted().await,
            StepEnd::Stuck => self.stuck().await,
        }
    }

    async fn interrupted(&mut self) -> (Summary, Ended) {
        let seconds = GRACE.as_secs();
        self.progress.say(&format!(
            "stopping: waiting up to {seconds} s for batches in flight; a second signal stops at once"
        ));
        (
            self.end(GRACE).await,
            Ended::Early("interrupted before all records were stored".to_owned()),
        )
    }

    async fn stuck(&mut self) -> (Summary, Ended) {
        let (to, seconds) = (&self.flags.to, self.flags.timeout.unwrap_or_default());
        let trouble = self.client.stats().last_trouble;
        let trouble = trouble.map_or(String::new(), |trouble| format!("; {trouble}"));
        let why = format!("gave up: {to} has stored nothing for {seconds} s{trouble}");
        (self.end(Duration::ZERO).await, Ended::Early(why))
    }

    /// Closes the client; a further signal closes it at once.
    async fn end(&mut self, grace: Duration) -> Summary {
        let (client, allow_partial_batch) = (Rc::clone(&self.client), self.allow_partial_batch);
        let close = async |grace| match allow_partial_batch {
            true => client.close(grace).await,
            false => client.interrupt(grace).await,
        };
        tokio::select! {
            summary = close(grace) => summary,
            () = self.signals.next() => close(Duration::ZERO).await,
        }
    }

    /// Runs one step and updates the progress meanwhile.
    async fn watch<T>(&mut self, work: impl Future<Output = T>) -> StepEnd<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return StepEnd::Done(done),
                () = self.signals.next() => return StepEnd::Interrupted,
                Some(batch) = self.rejections.recv() => self.show_rejected(&batch),
                _ = self.tick.tick() => {
                    if self.update() {
                        return StepEnd::Stuck;
                    }
                }
            }
        }
    }

    /// Updates the progress. True if nothing was stored within `--timeout`.
    fn update(&mut self) -> bool {
        let stats = self.client.stats();
        let wrong = std::mem::take(&mut self.stats.borrow_mut().wrong);
        for line in wrong {
            self.show(&format!("{}: {line}", self.source));
        }
        let bytes = self.stats.borrow().bytes;
        self.progress.show(bytes, &stats);
        let settled = stats.records_acked + stats.records_known + stats.records_rejected;
        if settled != self.last_progress.1 || stats.records_held == 0 {
            self.last_progress = (Instant::now(), settled);
        }
        let timeout = self.flags.timeout.map(Duration::from_secs);
        timeout.is_some_and(|timeout| self.last_progress.0.elapsed() >= timeout)
    }

    fn show_rejected(&mut self, batch: &RejectedBatch) {
        let RejectedBatch { seq, cause, records } = batch;
        let why = match cause {
            RejectCause::Refused { reason, message } => format!("{reason}: {message}"),
            RejectCause::Spared => "the server asked senders to drop data".to_owned(),
        };
        self.show(&format!("batch {seq} with {} records was rejected: {why}", records.len()));
    }

    fn show(&mut self, line: &str) {
        self.shown += 1;
        // The limit covers invalid lines and rejected batches together.
        if self.shown <= 2 * SHOWN_MAX {
            self.progress.say(line);
        }
    }
}

/// The error with the flags that mend it.
fn explained(error: &ClientError) -> String {
    match error {
        ClientError::SpeaksTls { .. } => {
            format!("{error} with --tls, and name its authority with --ca FILE")
        }
        ClientError::Unauthorized { .. } => format!("{error}, with TIDEGATE_TOKEN or --token"),
        error => error.to_string(),
    }
}
