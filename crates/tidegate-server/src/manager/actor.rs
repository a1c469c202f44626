use super::attempt::now_ms;
use super::book::Book;
use super::command::Command;
use super::event::Event;
use super::link::Link;
use super::meters::ManagerMeters;
use super::runtimes::Runtimes;
use super::terms::ManagerTerms;
use crate::chance::Chance;
use crate::worker::CapacityReport;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tidegate::capacity::{Dispatcher, ExecutorId, Ticket, WaitEstimate};
use tidegate::ledger::Ledger;
use tidegate::tasks::TaskStore;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// How often what is due by the clock is looked at.
const TICK: Duration = Duration::from_millis(100);
/// Events that are taken in before it is decided again what to do: under load one decision is for many.
const EVENTS_AT_ONCE: usize = 256;

/// The manager's one thread: it alone knows all tasks that are not over, and decides. Whatever waits is a task of
/// its own that reports by an [`Event`].
pub(super) struct Actor<S, L> {
    pub terms: ManagerTerms,
    pub store: Arc<S>,
    pub ledger: Arc<L>,
    pub meters: Arc<ManagerMeters>,
    pub dispatcher: Dispatcher,
    pub executors: Vec<Known>,
    pub book: Book,
    /// Submissions on their way to the store: their number, and what they hold.
    pub arriving: (usize, usize),
    pub runtimes: Runtimes,
    /// Tasks that wait until a time, in milliseconds of Unix time.
    pub later: BTreeSet<(u64, Ticket)>,
    pub estimate: WaitEstimate,
    pub events: mpsc::Sender<Event>,
    pub chance: Chance,
    pub started: Instant,
    pub due: Due,
    pub draining: bool,
    /// Fences that the ledger had given at earlier looks, and when: some seconds of them, by executor.
    pub fences: HashMap<ExecutorId, VecDeque<(Duration, u64)>>,
    /// Those that hold a slot in the ledger.
    pub leased: BTreeSet<Ticket>,
}

/// An executor, as its manager knows it.
pub(super) struct Known {
    pub name: Box<str>,
    pub url: String,
    pub link: Arc<Link>,
    pub up: bool,
    pub asked: bool,
    pub report: Option<CapacityReport>,
}

/// When what is next due.
pub(super) struct Due {
    pub probe: Instant,
    pub renew: Instant,
    pub beat: Instant,
    pub forget: Instant,
}

/// How far a stop has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It runs.
    No,
    /// It takes nothing more, and lets finish what ends with it.
    Drain,
}

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    /// Runs until it is told to stop, and then until what would be lost is done or the grace is over.
    pub async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut events: mpsc::Receiver<Event>,
        mut stop: watch::Receiver<Stop>,
        grace: Duration,
    ) {
        let mut until = None;
        let mut batch = Vec::new();
        self.meet_those_here();
        self.adopt();
        self.watch_ledger();
        loop {
            let wake = self.next_wake();
            tokio::select! {
                biased;
                count = events.recv_many(&mut batch, EVENTS_AT_ONCE) => {
                    if count == 0 {
                        return;
                    }
                    for event in batch.drain(..) {
                        self.take_event(event);
                    }
                }
                Some(command) = commands.recv() => {
                    self.take_command(command);
                    for _ in 1..EVENTS_AT_ONCE {
                        let Ok(command) = commands.try_recv() else { break };
                        self.take_command(command);
                    }
                }
                changed = stop.changed(), if !self.draining => {
                    let _ = changed;
                    self.draining = true;
                    until = Some(Instant::now() + grace);
                    tracing::info!(tasks = self.book.len(), "the manager ends; tasks are kept");
                }
                () = sleep_until(wake) => {}
            }
            self.keep_house();
            self.place();
            if self.draining && self.may_end(until) {
                return;
            }
        }
    }

    /// Time since the start, which is the dispatcher's clock.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn next_wake(&self) -> Instant {
        let tick = Instant::now() + TICK;
        let dispatcher = self.dispatcher.next_wake(self.now()).map(|at| self.started + at);
        dispatcher.map_or(tick, |at| at.min(tick))
    }

    /// What runs elsewhere goes on, and is found again; what ends with this process should end well.
    fn may_end(&self, until: Option<Instant>) -> bool {
        let ours = self.executors.iter().filter(|executor| executor.link.ends_with_us());
        let names: Vec<&str> = ours.map(|executor| &*executor.name).collect();
        let at_ours = |at: &str| names.contains(&at);
        let busy = self.book.iter().any(|(_, entry)| entry.at.as_deref().is_some_and(at_ours));
        !busy && self.arriving.0 == 0 || until.is_some_and(|until| Instant::now() >= until)
    }

    /// Moves what has waited long enough into the line.
    pub fn enqueue_due(&mut self) {
        let now_ms = now_ms();
        while let Some((at_ms, ticket)) = self.later.first().copied() {
            if at_ms > now_ms {
                return;
            }
            self.later.pop_first();
            self.enqueue(ticket);
        }
    }

    /// A task waits for a slot: now, or from a time on.
    pub fn enqueue(&mut self, ticket: Ticket) {
        let Some(entry) = self.book.get(ticket) else { return };
        let (spec, state) = (&entry.record.spec, &entry.record.state);
        match state.not_before_ms {
            Some(at_ms) if at_ms > now_ms() => {
                self.later.insert((at_ms, ticket));
            }
            _ => {
                let runtime = self.runtimes.id(&spec.runtime);
                self.dispatcher.submit(ticket, spec.priority, runtime);
            }
        }
    }
}
