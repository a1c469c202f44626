use super::feed::{Fed, Feed, Tally};
use super::lines::SHOWN_MAX;
use super::pace::Pace;
use super::progress::Progress;
use super::source::Source;
use super::summary::Report;
use crate::commands::signals::Signals;
use crate::failure::Failure;
use crate::send_flags::SendFlags;
use std::cell::RefCell;
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tidegate::client::{
    ClientConfig, IngestClient, Numbering, RejectCause, RejectedBatch, Rejections, Summary,
};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How long what is under way may take when nothing more is to come.
const GRACE: Duration = Duration::from_secs(5);

/// One run of the command.
pub struct Sending<'a> {
    flags: &'a SendFlags,
    client: Rc<IngestClient>,
    rejections: Rejections,
    signals: Signals,
    progress: Progress,
    tick: Interval,
    tally: Rc<RefCell<Tally>>,
    source: String,
    /// Wrong lines and rejected batches that were shown.
    shown: usize,
    /// Whether a part of a batch may be sent. Not of a file: later it would be taken for the whole.
    part_may_go: bool,
    /// When something was last settled, and how much was by then.
    moved: (Instant, u64),
}

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    /// All was read and settled.
    Done,
    /// Not all was, and why.
    Early(String),
}

/// How a part of a run ended.
enum Watched<T> {
    Done(T),
    /// By a signal.
    Interrupted,
    /// Nothing was stored for as long as the flags allow.
    Stuck,
}

// === impl Sending ===

impl<'a> Sending<'a> {
    pub fn start(flags: &'a SendFlags, source: &Source, signals: Signals) -> Result<Self, Failure> {
        let identity = &source.identity;
        let mut config = ClientConfig::new(identity.sender.clone());
        config.numbering = identity.numbering;
        config.batch = flags.limits();
        if identity.numbering == Numbering::FromOne {
            // Cut by content alone, so that the same file is the same batches.
            config.linger = None;
        }
        let made = IngestClient::connect(flags.to.as_str(), config);
        let (client, rejections) = made.map_err(|error| Failure::Usage(error.to_string()))?;
        let mut tick = interval(Duration::from_millis(100));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            flags,
            client: Rc::new(client),
            rejections,
            signals,
            progress: Progress::new(flags.quiet, source.bytes, &flags.to),
            tick,
            tally: Rc::default(),
            source: source.name.clone(),
            shown: 0,
            part_may_go: identity.numbering == Numbering::Continue,
            moved: (Instant::now(), 0),
        })
    }

    /// Reads, sends and waits until all is settled, or ends before.
    pub async fn run(mut self, source: Source) -> (Report, Ended) {
        let sender = source.identity.sender.to_string();
        let (summary, ended) = self.send(source).await;
        self.look();
        while let Some(batch) = self.rejections.try_recv() {
            self.show_rejected(&batch);
        }
        self.progress.finish();
        let tally = self.tally.borrow();
        let ended = match &summary.error {
            Some(error) => Ended::Early(error.to_string()),
            None => ended,
        };
        let report = Report {
            source: self.source.clone(),
            server: self.flags.to.clone(),
            sender,
            elapsed: self.progress.elapsed(),
            lines: tally.lines,
            lines_refused: tally.lines_wrong,
            summary,
        };
        (report, ended)
    }

    async fn send(&mut self, source: Source) -> (Summary, Ended) {
        let feed = Feed {
            client: Rc::clone(&self.client),
            tally: Rc::clone(&self.tally),
            pace: self.flags.rate.map(Pace::new),
            strict: self.flags.strict && source.bytes.is_none(),
        };
        let fed = match self.watch(feed.run(source.pieces())).await {
            Watched::Done(fed) => fed,
            Watched::Interrupted => return self.interrupted().await,
            Watched::Stuck => return self.stuck().await,
        };
        let name = &self.source;
        let ended = match fed {
            Fed::All => Ended::Done,
            Fed::Strict => Ended::Early(format!("{name}: nothing behind the wrong line was sent")),
            Fed::Changed => Ended::Early(format!(
                "{name} changed while it was sent: what was stored of it counts again when it is sent again"
            )),
            Fed::Unreadable(error) => {
                let why = format!("can't read {name} to its end: {error}");
                return (self.end(GRACE).await, Ended::Early(why));
            }
            Fed::Ended(error) => {
                return (self.end(Duration::ZERO).await, Ended::Early(error.to_string()));
            }
        };
        let client = Rc::clone(&self.client);
        // All is read: what is left is the end of the file, and cut there each time.
        self.part_may_go = true;
        match self.watch(async move { client.flush().await }).await {
            // What was rejected is in the summary.
            Watched::Done(_) => (self.client.close(Duration::ZERO).await, ended),
            Watched::Interrupted => self.interrupted().await,
            Watched::Stuck => self.stuck().await,
        }
    }

    async fn interrupted(&mut self) -> (Summary, Ended) {
        let seconds = GRACE.as_secs();
        self.progress.say(&format!(
            "stopping: up to {seconds} s for what is under way; the same again stops at once"
        ));
        (self.end(GRACE).await, Ended::Early("interrupted before all was stored".to_owned()))
    }

    async fn stuck(&mut self) -> (Summary, Ended) {
        let (to, seconds) = (&self.flags.to, self.flags.timeout.unwrap_or_default());
        let trouble = self.client.stats().last_trouble;
        let trouble = trouble.map_or(String::new(), |trouble| format!("; {trouble}"));
        let why = format!("gave up: {to} has stored nothing for {seconds} s{trouble}");
        (self.end(Duration::ZERO).await, Ended::Early(why))
    }

    /// Ends the client, at once on a further signal.
    async fn end(&mut self, grace: Duration) -> Summary {
        let (client, part_may_go) = (Rc::clone(&self.client), self.part_may_go);
        let close = async |grace| match part_may_go {
            true => client.close(grace).await,
            false => client.interrupt(grace).await,
        };
        tokio::select! {
            summary = close(grace) => summary,
            () = self.signals.next() => close(Duration::ZERO).await,
        }
    }

    /// Does a part of the work, and meanwhile shows how far it is.
    async fn watch<T>(&mut self, work: impl Future<Output = T>) -> Watched<T> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Watched::Done(done),
                () = self.signals.next() => return Watched::Interrupted,
                Some(batch) = self.rejections.recv() => self.show_rejected(&batch),
                _ = self.tick.tick() => {
                    if self.look() {
                        return Watched::Stuck;
                    }
                }
            }
        }
    }

    /// Shows how far it is. Tells whether nothing was stored for too long.
    fn look(&mut self) -> bool {
        let stats = self.client.stats();
        let wrong = std::mem::take(&mut self.tally.borrow_mut().wrong);
        for line in wrong {
            self.show(&format!("{}: {line}", self.source));
        }
        let bytes = self.tally.borrow().bytes;
        self.progress.show(bytes, &stats);
        let settled = stats.records_acked + stats.records_known + stats.records_rejected;
        if settled != self.moved.1 || stats.records_held == 0 {
            self.moved = (Instant::now(), settled);
        }
        let patience = self.flags.timeout.map(Duration::from_secs);
        patience.is_some_and(|patience| self.moved.0.elapsed() >= patience)
    }

    fn show_rejected(&mut self, batch: &RejectedBatch) {
        let RejectedBatch { seq, cause, records } = batch;
        let why = match cause {
            RejectCause::Refused { reason, message } => format!("{reason}: {message}"),
            RejectCause::Spared => "the server asked to be spared".to_owned(),
        };
        self.show(&format!("batch {seq} of {} records was not taken: {why}", records.len()));
    }

    fn show(&mut self, line: &str) {
        self.shown += 1;
        // Lines and batches together: enough to see what is wrong, however much is.
        if self.shown <= 2 * SHOWN_MAX {
            self.progress.say(line);
        }
    }
}
