use super::slow_log::SlowReaderLog;
use crate::config::Config;
use crate::gateway::activity::{Activity, Order};
use crate::gateway::buffer::BufferBudget;
use crate::http::client::BodyRate;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The longest that a pass may be away: it is also how a thread shows that it is alive.
const PERIOD_MAX: Duration = Duration::from_secs(1);

/// Looks after a thread's connections: ends those that only cost, by saying nothing or by taking nothing, and
/// all of them when the gateway drains.
///
/// One for all, and not a timer in each: a request then touches no timer for it.
pub struct ConnectionReaper {
    watched: Vec<Watched>,
    quiet_max: Duration,
    stall_max: Duration,
    body_rate: BodyRate,
    slow_readers: SlowReaderLog,
    draining: bool,
}

/// One connection under watch.
struct Watched {
    activity: Weak<Activity>,
    /// Since when the client has taken nothing, and how much it had taken.
    stall: Option<(Instant, u64)>,
    asked_to_end: bool,
}

// === impl ConnectionReaper ===

impl ConnectionReaper {
    pub fn new(config: &Config) -> Self {
        Self {
            watched: Vec::new(),
            quiet_max: config.listen.header_timeout,
            stall_max: config.proxy.stream_idle_timeout,
            body_rate: BodyRate {
                min: config.listen.body_rate_min,
                grace: config.listen.body_grace,
            },
            slow_readers: SlowReaderLog::default(),
            draining: false,
        }
    }

    /// The interval between two passes, so that every limit is kept within a quarter.
    pub fn period(&self) -> Duration {
        (self.quiet_max.min(self.stall_max).min(self.body_rate.grace) / 4).min(PERIOD_MAX)
    }

    /// Takes a new connection under watch.
    pub fn take(&mut self, activity: &Arc<Activity>) {
        if self.draining {
            activity.give(Order::End);
        }
        let activity = Arc::downgrade(activity);
        self.watched.push(Watched { activity, stall: None, asked_to_end: false });
    }

    /// Looks at every connection once, and forgets those that are gone.
    pub fn pass(&mut self) {
        let (quiet_max, stall_max, body_rate) = (self.quiet_max, self.stall_max, self.body_rate);
        self.watched.retain_mut(|connection| {
            let Some(activity) = connection.activity.upgrade() else { return false };
            // A little later than an answer ends by itself when it is the upstream that has stopped.
            activity.release_stopped_streams(stall_max + stall_max / 4);
            activity.judge_uploads(body_rate);
            let order = connection.judge(&activity, quiet_max, stall_max);
            if order != Order::Go {
                activity.give(order);
            }
            true
        });
    }

    /// Closes the connections whose clients have taken nothing for longest, until the responses that wait for
    /// clients are within their budget.
    pub fn keep_budget(&mut self, budget: &BufferBudget) {
        let mut excess = budget.excess();
        let mut closed = 0;
        if excess > 0 {
            let open = self.watched.iter().filter_map(|connection| connection.activity.upgrade());
            let waiting = open.filter_map(|activity| Some((activity.waiting()?, activity)));
            let mut waiting: Vec<_> = waiting.collect();
            // Those that were told to end and have not yet come first: they free what they hold.
            waiting
                .sort_by_key(|(waiting, activity)| (activity.order() != Order::Cut, waiting.since));
            for (waiting, activity) in waiting {
                if excess == 0 {
                    break;
                }
                if activity.order() != Order::Cut {
                    activity.give(Order::Cut);
                    closed += 1;
                }
                excess = excess.saturating_sub(waiting.bytes);
            }
            budget.record_closed(closed);
        }
        self.slow_readers.record(closed, Instant::now());
    }

    /// Asks every connection to end once what is under way on it is finished.
    pub fn drain(&mut self) {
        self.draining = true;
        for activity in self.watched.iter().filter_map(|connection| connection.activity.upgrade()) {
            activity.give(Order::End);
        }
    }
}

// === impl Watched ===

impl Watched {
    fn judge(&mut self, activity: &Activity, quiet_max: Duration, stall_max: Duration) -> Order {
        let (_, blocked) = activity.written();
        match activity.quiet_for() {
            // The last of an answer is still on its way, however long ago its exchange was over.
            Some(_) if blocked => self.judge_writes(activity, stall_max),
            Some(quiet) if quiet < quiet_max => Order::Go,
            // Half a head is no exchange, so a client that never finishes one is asked, and then cut.
            Some(_) if self.asked_to_end => Order::Cut,
            Some(_) => {
                self.asked_to_end = true;
                Order::End
            }
            None => self.judge_writes(activity, stall_max),
        }
    }

    fn judge_writes(&mut self, activity: &Activity, stall_max: Duration) -> Order {
        let (written, blocked) = activity.written();
        match self.stall {
            _ if !blocked => self.stall = None,
            Some((since, before)) if before == written => {
                if since.elapsed() >= stall_max {
                    return Order::Cut;
                }
            }
            _ => self.stall = Some((Instant::now(), written)),
        }
        Order::Go
    }
}
