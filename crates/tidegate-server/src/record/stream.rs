use super::Decision;
use super::journal::{Journal, Tapped};
use crate::gateway::{Phase, Shared};
use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tidegate::{InFlightTracker, MessagePriority, Sharing};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, sleep_until};

/// The version of what is written.
const VERSION: u32 = 1;

/// How often what was told is taken. By the clock, so that no request has to wake anybody.
const TAKEN_EVERY: Duration = Duration::from_millis(50);

/// Lines in one piece: about 50 KB.
const LINES_MAX: usize = 512;

/// Who takes nothing for so long records no longer.
const STALLED_AFTER: Duration = Duration::from_secs(30);

/// Decisions as lines of JSON, as a body: what was in force, then each request whose end is known, then how it
/// ended.
pub struct DecisionStream {
    tapped: Tapped,
    started: Instant,
    tracker: Arc<InFlightTracker>,
    watched: Arc<Watched>,
    head: Option<Bytes>,
    ticks: Interval,
    /// Whether there is more to take than was taken.
    more: bool,
    over: bool,
    told: u64,
    lost_told: u64,
}

/// What a stream and its warden know of each other.
struct Watched {
    started: Instant,
    taken_ms: AtomicU64,
    end: AtomicU8,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum End {
    Time,
    Draining,
    Stalled,
}

/// One request, as a line.
#[derive(Serialize)]
struct Row<'a> {
    at_us: i64,
    priority: MessagePriority,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
    decision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_us: Option<u64>,
}

/// The first line: what was in force.
#[derive(Serialize)]
struct Head {
    format: &'static str,
    version: u32,
    gateway: &'static str,
    started_unix_ms: u64,
    limits: HeadLimits,
    sharing: Sharing,
    dry_run: bool,
    in_flight: InFlight,
}

#[derive(Serialize)]
struct HeadLimits {
    global: u16,
    high: u16,
    normal: u16,
    low: u16,
    critical_reserve: u16,
}

/// The last line: how it ended.
#[derive(Serialize)]
struct Foot {
    end: &'static str,
    decisions: u64,
    lost: u64,
    lasted_us: i64,
    in_flight: InFlight,
}

#[derive(Serialize)]
struct InFlight {
    critical: u64,
    high: u64,
    normal: u64,
    low: u64,
}

// === impl DecisionStream ===

impl DecisionStream {
    /// The decisions of this gateway for so long.
    pub(super) fn new(shared: &Shared, tapped: Tapped, lasts: Duration) -> Self {
        let started = Instant::now();
        let (taken_ms, end) = (AtomicU64::new(0), AtomicU8::new(End::Time as u8));
        let watched = Arc::new(Watched { started, taken_ms, end });
        let tracker = Arc::clone(&shared.tracker);
        let warden = Warden {
            journal: Arc::downgrade(&shared.journal),
            id: tapped.id(),
            watched: Arc::downgrade(&watched),
            phase: shared.phase.clone(),
        };
        tokio::spawn(warden.watch(started + lasts));
        let mut ticks = interval(TAKEN_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            head: Some(line(&Head::of(shared))),
            tapped,
            started,
            tracker,
            watched,
            ticks,
            more: false,
            over: false,
            told: 0,
            lost_told: 0,
        }
    }

    /// The next lines; `None` after the last.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(head));
        }
        loop {
            if self.over {
                return Poll::Ready(None);
            }
            if !self.more {
                ready!(self.ticks.poll_tick(cx));
            }
            self.watched.touch();
            let lines = self.take();
            if !lines.is_empty() {
                return Poll::Ready(Some(lines.into()));
            }
        }
    }

    fn take(&mut self) -> Vec<u8> {
        let mut lines = Vec::new();
        self.more = true;
        for _ in 0..LINES_MAX {
            match self.tapped.decisions.try_recv() {
                Ok(decision) => {
                    write(&mut lines, &self.row(&decision));
                    self.told += 1;
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
        let lost = self.tapped.lost.load(Ordering::Relaxed);
        if lost > self.lost_told {
            write(&mut lines, &json!({ "lost": lost - self.lost_told }));
            self.lost_told = lost;
        }
        if self.over {
            write(&mut lines, &self.foot());
        }
        lines
    }

    fn row<'a>(&self, decision: &'a Decision) -> Row<'a> {
        // What came before the recording began, and ended in it, came before its zero.
        let at_us = match decision.decided.checked_duration_since(self.started) {
            Some(after) => micros(after),
            None => -micros(self.started - decision.decided),
        };
        Row {
            at_us,
            priority: decision.priority,
            client: decision.client.as_deref(),
            decision: decision.verdict.name(),
            took_us: decision.took.map(|took| micros(took).unsigned_abs()),
        }
    }

    fn foot(&self) -> Foot {
        let end = match self.watched.end.load(Ordering::Relaxed) {
            end if end == End::Draining as u8 => "draining",
            end if end == End::Stalled as u8 => "stalled",
            _ => "time",
        };
        Foot {
            end,
            decisions: self.told,
            lost: self.lost_told,
            lasted_us: micros(self.started.elapsed()),
            in_flight: InFlight::of(&self.tracker),
        }
    }
}

// === impl Head ===

impl Head {
    fn of(shared: &Shared) -> Self {
        let limits = shared.tracker.limits();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            format: "tidegate-decisions",
            version: VERSION,
            gateway: env!("CARGO_PKG_VERSION"),
            started_unix_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
            limits: HeadLimits {
                global: limits.global_limit,
                high: limits.high,
                normal: limits.normal,
                low: limits.low,
                critical_reserve: limits.critical_reserve,
            },
            sharing: shared.config.admission.sharing,
            dry_run: shared.config.dry_run,
            in_flight: InFlight::of(&shared.tracker),
        }
    }
}

// === impl InFlight ===

impl InFlight {
    fn of(tracker: &InFlightTracker) -> Self {
        let stats = tracker.stats();
        Self {
            critical: stats.critical_in_flight,
            high: stats.high_in_flight,
            normal: stats.normal_in_flight,
            low: stats.low_in_flight,
        }
    }
}

fn line(value: &impl Serialize) -> Bytes {
    let mut line = Vec::new();
    write(&mut line, value);
    line.into()
}

/// Nothing here can fail to be written: names are strings, and memory takes what it is given.
fn write(lines: &mut Vec<u8>, value: &impl Serialize) {
    if serde_json::to_writer(&mut *lines, value).is_ok() {
        lines.push(b'\n');
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

// === impl Watched ===

impl Watched {
    fn touch(&self) {
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.taken_ms.store(now_ms, Ordering::Relaxed);
    }

    fn is_stalled(&self) -> bool {
        let taken = Duration::from_millis(self.taken_ms.load(Ordering::Relaxed));
        self.started.elapsed() > taken + STALLED_AFTER
    }
}

/// Ends a recording that nobody else ends.
struct Warden {
    journal: Weak<Journal>,
    id: u64,
    watched: Weak<Watched>,
    phase: watch::Receiver<Phase>,
}

// === impl Warden ===

impl Warden {
    async fn watch(mut self, until: Instant) {
        let end = loop {
            if *self.phase.borrow() == Phase::Draining {
                break End::Draining;
            }
            tokio::select! {
                () = sleep_until(until.into()) => break End::Time,
                _ = self.phase.changed() => {}
                () = sleep(Duration::from_secs(1)) => {}
            }
            match self.watched.upgrade() {
                None => return,
                Some(watched) if watched.is_stalled() => break End::Stalled,
                Some(_) => {}
            }
        };
        if let (Some(watched), Some(journal)) = (self.watched.upgrade(), self.journal.upgrade()) {
            watched.end.store(end as u8, Ordering::Relaxed);
            journal.retire(self.id);
        }
    }
}
