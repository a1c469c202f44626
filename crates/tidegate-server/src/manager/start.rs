use super::TaskDesk;
use super::actor::{Actor, Due, Known, Stop};
use super::book::Book;
use super::http_link::HttpLink;
use super::link::Link;
use super::meters::ManagerMeters;
use super::runtimes::Runtimes;
use super::terms::ManagerTerms;
use crate::chance::Chance;
use crate::worker::Executor;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tidegate::capacity::{Dispatcher, WaitEstimate};
use tidegate::ledger::Ledger;
use tidegate::tasks::TaskStore;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Wishes that wait for the manager's thread. Those beyond wait at the desk.
const COMMANDS: usize = 1_024;
/// Reports that wait for it.
const EVENTS: usize = 4_096;

/// Where an executor is.
#[derive(Clone)]
pub enum Place {
    /// At a URL, by the contract over HTTP.
    Url(String),
    /// In this process.
    Here(Executor),
}

/// A running manager of tasks. Ends when it is [shut down](Manager::shutdown) or dropped; a drop does not wait.
pub struct Manager {
    desk: TaskDesk,
    meters: Arc<ManagerMeters>,
    stop: watch::Sender<Stop>,
    thread: JoinHandle<()>,
}

// === impl Manager ===

impl Manager {
    /// Starts the manager's thread, on the runtime that drives its store and its ledger. Tasks of an earlier life
    /// are taken up again.
    ///
    /// # Errors
    ///
    /// When the system gives no thread.
    pub fn start<S: TaskStore, L: Ledger>(
        terms: ManagerTerms,
        places: &[Place],
        store: Arc<S>,
        ledger: Arc<L>,
        runtime: Runtime,
        grace: Duration,
    ) -> io::Result<Self> {
        let (commands, inbox) = mpsc::channel(COMMANDS);
        let (events, reports) = mpsc::channel(EVENTS);
        let (stop, stopping) = watch::channel(Stop::No);
        let meters = Arc::new(ManagerMeters::default());
        let (counted, places) = (Arc::clone(&meters), places.to_vec());
        let thread =
            thread::Builder::new().name("tidegate-manager".to_owned()).spawn(move || {
                runtime.block_on(async move {
                    let now = Instant::now();
                    let actor = Actor {
                        dispatcher: Dispatcher::new(terms.placement),
                        due: Due {
                            probe: now,
                            renew: now,
                            beat: now + terms.lease / 3,
                            forget: now,
                        },
                        terms,
                        store,
                        ledger,
                        meters: counted,
                        executors: places.iter().map(known).collect(),
                        book: Book::default(),
                        arriving: (0, 0),
                        runtimes: Runtimes::default(),
                        later: BTreeSet::new(),
                        estimate: WaitEstimate::default(),
                        events,
                        chance: Chance::from_process(),
                        started: now,
                        draining: false,
                        fences: HashMap::new(),
                        leased: BTreeSet::new(),
                    };
                    actor.run(inbox, reports, stopping, grace).await;
                });
                // What only follows executions elsewhere is not waited for.
                runtime.shutdown_timeout(Duration::from_secs(1));
            })?;
        Ok(Self { desk: TaskDesk::new(commands), meters, stop, thread })
    }

    /// Where tasks are handed in and asked for.
    #[must_use]
    pub fn desk(&self) -> &TaskDesk {
        &self.desk
    }

    /// What it counts.
    #[must_use]
    pub fn meters(&self) -> &Arc<ManagerMeters> {
        &self.meters
    }

    /// Takes nothing more, lets finish what would end with this process, within the grace, and waits for the end.
    pub fn shutdown(self) {
        self.stop.send_replace(Stop::Drain);
        // A thread that panicked has logged it.
        let _ = self.thread.join();
    }
}

fn known(place: &Place) -> Known {
    let (name, url, link) = match place {
        Place::Url(url) => {
            (url.as_str().into(), url.clone(), Link::Http(Box::new(HttpLink::new(url))))
        }
        Place::Here(executor) => {
            (executor.id().into(), String::new(), Link::Local(executor.clone()))
        }
    };
    let link = Arc::new(link);
    Known { name, url, link, up: false, asked: false, report: None }
}
