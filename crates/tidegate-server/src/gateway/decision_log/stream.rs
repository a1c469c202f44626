use super::decision_log::{DecisionLog, Subscription};
use super::{Decision, DecisionSource};
use crate::http::{ByteStream, Phase};
use bytes::Bytes;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidegate::InFlightTracker;
use tidegate::decision_log::{DecisionRecord, Footer, Header, InFlight, Line};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, sleep_until};

/// The interval at which decisions are taken from the buffer. A timer, so that no request has to wake the stream.
const TAKE_EVERY: Duration = Duration::from_millis(50);

/// Lines in one chunk: about 50 KB.
const LINES_MAX: usize = 512;

/// The time after which a recording whose client reads nothing ends.
const STALLED_AFTER: Duration = Duration::from_secs(30);

/// A response body of JSON lines: the limits in force, a line for each request that ended, and the reason of the
/// end.
pub struct DecisionStream {
    subscription: Subscription,
    started: Instant,
    tracker: Arc<InFlightTracker>,
    progress: Arc<Progress>,
    header: Option<Bytes>,
    ticks: Interval,
    /// True if the buffer may hold more than was taken.
    more: bool,
    over: bool,
    written: u64,
    lost_written: u64,
}

/// State that a stream shares with its timer.
struct Progress {
    started: Instant,
    taken_ms: AtomicU64,
    end: AtomicU8,
}

/// The reason that a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum End {
    Time,
    Draining,
    Stalled,
}

// === impl DecisionStream ===

impl DecisionStream {
    /// Streams the decisions of this gateway for this time.
    pub(super) fn new(
        source: &DecisionSource,
        subscription: Subscription,
        lasts: Duration,
    ) -> Self {
        let started = Instant::now();
        let (taken_ms, end) = (AtomicU64::new(0), AtomicU8::new(End::Time as u8));
        let progress = Arc::new(Progress { started, taken_ms, end });
        let tracker = Arc::clone(source.admission.tracker());
        let timer = RecordingTimer {
            decision_log: Arc::downgrade(&source.log),
            id: subscription.id(),
            progress: Arc::downgrade(&progress),
            phase: source.phase.clone(),
        };
        tokio::spawn(timer.run(started + lasts));
        let mut ticks = interval(TAKE_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            header: Some(header(source)),
            subscription,
            started,
            tracker,
            progress,
            ticks,
            more: false,
            over: false,
            written: 0,
            lost_written: 0,
        }
    }

    fn take(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        self.more = true;
        for _ in 0..LINES_MAX {
            match self.subscription.decisions.try_recv() {
                Ok(decision) => {
                    Line::Decision(self.record(&decision)).encode(&mut lines);
                    self.written += 1;
                }
                Err(TryRecvError::Empty) => {
                    self.more = false;
                    break;
                }
                Err(TryRecvError::Disconnected) => {
                    self.over = true;
                    break;
                }
            }
        }
        let lost = self.subscription.lost.load(Ordering::Relaxed);
        if lost > self.lost_written {
            Line::Lost(lost - self.lost_written).encode(&mut lines);
            self.lost_written = lost;
        }
        if self.over {
            Line::End(self.footer()).encode(&mut lines);
        }
        lines
    }

    fn record<'a>(&self, decision: &'a Decision) -> DecisionRecord<'a> {
        // A request that came before the recording began has a negative time.
        let at_us = match decision.decided.checked_duration_since(self.started) {
            Some(after) => signed_micros(after),
            None => -signed_micros(self.started - decision.decided),
        };
        DecisionRecord {
            at_us,
            priority: decision.priority,
            client: decision.client.as_deref().map(Into::into),
            decision: decision.verdict.name().into(),
            took_us: decision.took.map(micros),
        }
    }

    fn footer(&self) -> Footer<'static> {
        let end = match self.progress.end.load(Ordering::Relaxed) {
            end if end == End::Draining as u8 => "draining",
            end if end == End::Stalled as u8 => "stalled",
            _ => "time",
        };
        Footer {
            end: end.into(),
            decisions: self.written,
            lost: self.lost_written,
            lasted_us: micros(self.started.elapsed()),
            in_flight: InFlight::of(&self.tracker),
        }
    }
}

impl ByteStream for DecisionStream {
    /// Polls for the next lines; `None` after the last.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(header) = self.header.take() {
            return Poll::Ready(Some(header));
        }
        loop {
            if self.over {
                return Poll::Ready(None);
            }
            if !self.more {
                ready!(self.ticks.poll_tick(cx));
            }
            self.progress.touch();
            let lines = self.take();
            if !lines.is_empty() {
                return Poll::Ready(Some(lines.into()));
            }
        }
    }
}

/// Returns the first line: the limits in force.
fn header(source: &DecisionSource) -> Bytes {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let header = Header {
        gateway: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
        limits: *source.admission.tracker().limits(),
        sharing: source.config.admission.sharing,
        dry_run: source.config.dry_run,
        in_flight: InFlight::of(source.admission.tracker()),
    };
    let mut line = Vec::new();
    header.encode(&mut line);
    line.into()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn signed_micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

// === impl Progress ===

impl Progress {
    fn touch(&self) {
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.taken_ms.store(now_ms, Ordering::Relaxed);
    }

    fn is_stalled(&self) -> bool {
        let taken = Duration::from_millis(self.taken_ms.load(Ordering::Relaxed));
        self.started.elapsed() > taken + STALLED_AFTER
    }
}

/// Ends a recording when its time is over, its client stalls or the gateway drains.
struct RecordingTimer {
    decision_log: Weak<DecisionLog>,
    id: u64,
    progress: Weak<Progress>,
    phase: watch::Receiver<Phase>,
}

// === impl RecordingTimer ===

impl RecordingTimer {
    async fn run(mut self, until: Instant) {
        let end = loop {
            if *self.phase.borrow() == Phase::Draining {
                break End::Draining;
            }
            tokio::select! {
                () = sleep_until(until.into()) => break End::Time,
                _ = self.phase.changed() => {}
                () = sleep(Duration::from_secs(1)) => {}
            }
            match self.progress.upgrade() {
                None => return,
                Some(progress) if progress.is_stalled() => break End::Stalled,
                Some(_) => {}
            }
        };
        if let (Some(progress), Some(decision_log)) =
            (self.progress.upgrade(), self.decision_log.upgrade())
        {
            progress.end.store(end as u8, Ordering::Relaxed);
            decision_log.retire(self.id);
        }
    }
}
