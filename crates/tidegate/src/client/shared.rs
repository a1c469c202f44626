use super::buffer::{BadNumbers, Buffer, Next, Taken, records_of};
use super::config::ClientConfig;
use super::error::{ClientError, ClientSendError, ClientTrySendError, Trouble};
use super::rejections::{Rejections, Reporter};
use super::stats::ClientStats;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate_core::frame::{BatchPushError, Welcome};
use tidegate_core::usage::UsageRecord;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// State shared by callers and the connection's task.
#[derive(Debug)]
pub(super) struct Shared {
    pub config: ClientConfig,
    started: Instant,
    state: Mutex<State>,
    reporter: Reporter,
    /// There may be something to send.
    pub to_send: Notify,
    /// There may be room, or nothing is taken any more.
    pub room: Notify,
    /// Something is over, or the client has ended.
    pub over: Notify,
    /// True once the task should end.
    pub stop: watch::Sender<bool>,
}

#[derive(Debug)]
struct State {
    buffer: Buffer,
    ended: Option<ClientError>,
    last_trouble: Option<Arc<Trouble>>,
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(config: ClientConfig) -> (Self, Rejections) {
        let (reporter, rejections) = Reporter::new(config.rejections_max);
        let buffer = Buffer::new(&config);
        let shared = Self {
            config,
            started: Instant::now(),
            state: Mutex::new(State { buffer, ended: None, last_trouble: None }),
            reporter,
            to_send: Notify::new(),
            room: Notify::new(),
            over: Notify::new(),
            stop: watch::Sender::new(false),
        };
        (shared, rejections)
    }

    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn at(&self, time: Duration) -> Instant {
        self.started + time
    }

    /// Takes as many of these from the first on as there is room for, and tells how many.
    pub(super) fn push(&self, records: &[UsageRecord]) -> (usize, Result<(), ClientTrySendError>) {
        let now = self.now();
        let mut state = self.lock();
        if let Some(ended) = &state.ended {
            return (0, Err(ClientSendError::Ended(ended.clone()).into()));
        }
        let (mut count, mut wake, mut result) = (0, false, Ok(()));
        for record in records {
            match state.buffer.push(record, now) {
                Ok(taken) => wake |= taken == Taken::ToSend,
                Err(BatchPushError::Full) => {
                    result = Err(ClientTrySendError::Full);
                    break;
                }
                Err(BatchPushError::Refused(fault)) => {
                    result = Err(ClientSendError::Refused(fault).into());
                    break;
                }
            }
            count += 1;
        }
        drop(state);
        if wake {
            self.to_send.notify_one();
        }
        (count, result)
    }

    /// Cuts what waits, so that it is sent whatever its size, and tells how many batches were cut in all.
    pub(super) fn cut(&self) -> u64 {
        let mut state = self.lock();
        state.buffer.cut();
        let count = state.buffer.cut_count();
        drop(state);
        self.to_send.notify_one();
        count
    }

    pub(super) fn next(&self) -> Next {
        let now = self.now();
        self.change(|buffer| buffer.next(now))
    }

    /// # Errors
    ///
    /// When this client can't send to this server, ever.
    pub(super) fn welcome(&self, server: &str, welcome: Welcome) -> Result<(), ClientError> {
        let (ours, theirs) = (self.config.batch, welcome.limits);
        let limits = [
            ("frame_bytes_max", ours.frame_bytes_max, theirs.frame_bytes_max),
            ("batch_records_max", ours.batch_records_max, theirs.batch_records_max),
            ("batch_names_max", ours.batch_names_max, theirs.batch_names_max),
        ];
        if let Some((field, ours, theirs)) =
            limits.into_iter().find(|(_, ours, theirs)| ours > theirs)
        {
            return Err(ClientError::Limits { server: server.to_owned(), field, ours, theirs });
        }
        let now = self.now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ns = u64::try_from(unix.as_nanos()).unwrap_or_default();
        let welcomed = self.change(|buffer| buffer.welcome(welcome, unix_ns, now));
        self.over.notify_waiters();
        welcomed.map_err(|error| match error {
            BadNumbers::Used => ClientError::NumbersUsed,
            BadNumbers::Taken => self.name_taken(server),
        })
    }

    pub(super) fn name_taken(&self, server: &str) -> ClientError {
        let sender = self.config.sender.to_string();
        ClientError::NameTaken { server: server.to_owned(), sender }
    }

    /// Changes what is held, and tells everybody whom it may concern.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Buffer) -> R) -> R {
        let mut state = self.lock();
        let before = (state.buffer.unsettled_records(), state.buffer.over_count());
        let result = change(&mut state.buffer);
        let after = (state.buffer.unsettled_records(), state.buffer.over_count());
        let given_up = state.buffer.take_given_up();
        drop(state);
        for batch in given_up {
            let records = || records_of(&batch.frame, self.config.batch);
            self.reporter.report(batch.seq, batch.cause, records);
        }
        if before != after {
            self.room.notify_waiters();
            self.over.notify_waiters();
        }
        result
    }

    pub(super) fn disconnected(&self, trouble: Trouble) {
        let mut state = self.lock();
        state.buffer.disconnected();
        state.last_trouble = Some(Arc::new(trouble));
    }

    /// Nothing is taken any more. The first reason stays.
    pub(super) fn end(&self, error: ClientError) {
        self.lock().ended.get_or_insert(error);
        self.room.notify_waiters();
        self.over.notify_waiters();
    }

    pub(super) fn ended(&self) -> Option<ClientError> {
        self.lock().ended.clone()
    }

    pub(super) fn read<R>(&self, read: impl FnOnce(&Buffer) -> R) -> R {
        read(&self.lock().buffer)
    }

    pub(super) fn stats(&self) -> ClientStats {
        let now = self.now();
        let state = self.lock();
        ClientStats {
            last_trouble: state.last_trouble.clone(),
            rejections_lost: self.reporter.lost(),
            ..state.buffer.stats(now)
        }
    }

    /// Nothing in here panics half way, so a poisoned lock holds what it should.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
