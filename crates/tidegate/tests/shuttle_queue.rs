//! Random schedules of threads over the queue of a router: requests that wait, leave or expire, slots that are
//! released, upstreams that fail, go, return or get another limit. A wake-up that is lost is a deadlock here,
//! which shuttle reports.
//!
//! `make shuttle`: it needs a feature of its own.

use shuttle::future::block_on;
use shuttle::rand::{Rng as _, thread_rng};
use shuttle::thread::{self, JoinHandle, yield_now};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;
use tidegate::MessagePriority::{self, High, Low, Normal};
use tidegate::queue::{PoolQueueConfig, WaitTarget};
use tidegate::rng::Rng;
use tidegate::routing::{
    AcquireError, Ask, Assignment, BusyThresholds, MonitorConfig, Pick, PushRouter, UpstreamId,
    UpstreamLimit, WorkerMonitor,
};

const SCHEDULES: usize = 2_000;
/// A wait that never ends by itself.
const LONG: Duration = Duration::from_secs(60);
/// A wait whose end comes at any moment.
const SHORT: Duration = Duration::from_millis(1);
const MODELS: [Option<&str>; 3] = [Some("a"), Some("b"), None];

/// By a random scheduler, and by one that prefers few, unlikely preemptions.
fn explore(model: fn()) {
    shuttle::check_random(model, SCHEDULES);
    shuttle::check_pct(model, SCHEDULES, 3);
}

/// A router over upstreams of so many slots each.
fn router(upstreams: usize, slots: u32, size: usize) -> (Arc<PushRouter>, Vec<UpstreamId>) {
    let target = WaitTarget { min: LONG, max: LONG, ..WaitTarget::default() };
    let queue = PoolQueueConfig { size, overflow_size: 0, target, ..PoolQueueConfig::default() };
    let config =
        MonitorConfig { limit: UpstreamLimit::Fixed(slots), queue, ..MonitorConfig::default() };
    let monitor = Arc::new(WorkerMonitor::new(config));
    let add = |number| monitor.add_upstream(&format!("upstream-{number}"), None);
    let ids = (0..upstreams).map(add).collect();
    (Arc::new(PushRouter::with_rng(monitor, Pick::PowerOfTwo, Rng::from_seed(1))), ids)
}

fn ask(priority: MessagePriority) -> Ask<'static> {
    Ask { priority, ..Ask::default() }
}

fn any_priority() -> MessagePriority {
    [High, Normal, Low][thread_rng().gen_range(0..3)]
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("it does not panic")
}

/// Lets other threads run, a few times.
fn linger() {
    (0..thread_rng().gen_range(0..4)).for_each(|_| yield_now());
}

/// Nobody waits, no slot is taken, and every wait has ended in one way.
fn assert_settled(router: &PushRouter) {
    for upstream in router.monitor().upstreams() {
        assert_eq!(upstream.in_flight, 0, "{upstream:?}");
    }
    for model in router.monitor().models() {
        let (queue, totals) = (model.queue, model.queue.totals);
        assert_eq!((model.in_flight, queue.high + queue.normal + queue.low), (0, 0));
        let ended = totals.served + totals.displaced + totals.expired + totals.left;
        assert_eq!(totals.queued, ended, "{totals:?}");
    }
}

/// Record of the requests for one slot, kept without a step of the schedule.
#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    clock: u32,
    /// Requests that asked for a slot, and that do not wait any more.
    asked: usize,
    ended: usize,
    waiting: BTreeMap<u32, Waiting>,
    /// The requests that have waited since before the last release: the slot is for one of them.
    entitled: BTreeMap<u32, Waiting>,
}

/// A request that is in the queue for certain.
#[derive(Clone, Copy)]
struct Waiting {
    priority: MessagePriority,
    since: u32,
}

// === impl Witness ===

impl Witness {
    fn see<R>(&self, see: impl FnOnce(&mut Seen) -> R) -> R {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clock += 1;
        see(&mut seen)
    }

    fn asks(&self) -> u32 {
        self.see(|seen| {
            seen.asked += 1;
            seen.clock
        })
    }

    /// Counts a request that does not wait any more: it has no position in the queue either.
    fn ends(&self, router: &PushRouter) {
        let ended = self.see(|seen| {
            seen.ended += 1;
            seen.ended
        });
        let queue = router.monitor().models()[0].queue;
        // Others that ask or end meanwhile can only make the bound larger.
        let bound = self.see(|seen| seen.asked) - ended;
        let waiting = queue.high + queue.normal + queue.low;
        assert!(waiting <= bound, "{waiting} positions for {bound} requests");
    }

    fn waits(&self, name: u32, priority: MessagePriority) {
        self.see(|seen| seen.waiting.insert(name, Waiting { priority, since: seen.clock }));
    }

    /// Says that a request may be gone from the queue at any moment from now on.
    fn leaves(&self, name: u32) {
        self.see(|seen| {
            seen.waiting.remove(&name);
            seen.entitled.remove(&name);
        });
    }

    /// Checks that a request that asked at `asked` was the first for the slot that it got.
    fn got_slot(&self, name: u32, priority: MessagePriority, asked: u32) {
        self.see(|seen| {
            for (other, waits) in seen.entitled.iter().filter(|(other, _)| **other != name) {
                // A lower number is more urgent.
                let comes_first = (waits.priority as u8) < priority as u8;
                assert!(!comes_first, "{priority:?} {name} overtook {:?} {other}", waits.priority);
                let came_first = waits.priority == priority && waits.since < asked;
                assert!(!came_first, "{priority:?} {name} overtook {other}, which came first");
            }
            seen.waiting.remove(&name);
            seen.entitled.clear();
        });
    }

    fn releases(&self) {
        self.see(|seen| seen.entitled.clone_from(&seen.waiting));
    }

    /// Runs a request that waits for the only slot until it gets it.
    async fn request(&self, router: &PushRouter, name: u32, priority: MessagePriority) {
        let asked = self.asks();
        let ask = ask(priority);
        let mut acquire = pin!(router.acquire(&ask, LONG));
        let mut is_queued = false;
        let got = poll_fn(|context| {
            let polled = acquire.as_mut().poll(context);
            if polled.is_pending() && !std::mem::replace(&mut is_queued, true) {
                self.waits(name, priority);
            }
            polled
        });
        let slot = got.await.expect("the queue has room");
        self.got_slot(name, priority, asked);
        linger();
        self.releases();
        drop(slot);
        self.ends(router);
    }

    /// Starts a request that leaves while it waits.
    fn start_and_leave(&self, router: &PushRouter, name: u32, priority: MessagePriority) {
        let asked = self.asks();
        let ask = ask(priority);
        let mut acquire = Box::pin(router.acquire(&ask, LONG));
        let polled = acquire.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if polled.is_pending() {
            self.waits(name, priority);
            linger();
            self.leaves(name);
        } else {
            self.got_slot(name, priority, asked);
            self.releases();
        }
        drop((polled, acquire));
        self.ends(router);
    }
}

/// One slot: every release hands it to the most urgent of those that wait, and among those to the first, whatever
/// arrives or leaves at that moment.
#[test]
fn shuttle_a_slot_goes_to_the_most_urgent_that_waits() {
    explore(|| {
        let (router, _) = router(1, 1, 100);
        let witness = Witness::default();
        let start = |name| {
            let (router, witness) = (Arc::clone(&router), witness.clone());
            thread::spawn(move || {
                let priority = any_priority();
                match thread_rng().gen_range(0..4) {
                    0 => witness.start_and_leave(&router, name, priority),
                    1 => {
                        // One that does not wait.
                        let asked = witness.asks();
                        if let Ok(slot) = router.route(&ask(priority)) {
                            witness.got_slot(name, priority, asked);
                            linger();
                            witness.releases();
                            drop(slot);
                        }
                        witness.ends(&router);
                    }
                    _ => block_on(witness.request(&router, name, priority)),
                }
            })
        };
        let threads: Vec<_> = (0..6).map(start).collect();
        threads.into_iter().for_each(join);
        assert_settled(&router);
    });
}

/// Two upstreams that fail and return: while the only request of High waits, nothing lower gets any slot.
#[test]
fn shuttle_nothing_lower_is_sent_while_high_waits() {
    explore(|| {
        let (router, ids) = router(2, 1, 100);
        let held: Vec<_> = (0..2).map(|_| router.route(&ask(Low)).expect("free")).collect();
        let urgent = thread::spawn({
            let router = Arc::clone(&router);
            move || drop(block_on(router.acquire(&ask(High), LONG)).expect("room to wait"))
        });
        let lower = |priority| {
            let router = Arc::clone(&router);
            let is_high_waiting = {
                let router = Arc::clone(&router);
                move || router.monitor().models()[0].queue.high > 0
            };
            thread::spawn(move || {
                for _ in 0..2 {
                    let before = is_high_waiting();
                    let slot = block_on(router.acquire(&ask(priority), LONG));
                    let waited_all_the_time = before && is_high_waiting();
                    assert!(!waited_all_the_time, "{priority:?} was sent while High waited");
                    linger();
                    drop(slot.expect("room to wait"));
                }
            })
        };
        let lower = [lower(Normal), lower(Low)];
        let operator = thread::spawn({
            let router = Arc::clone(&router);
            move || {
                router.monitor().set_up(ids[0], false);
                linger();
                router.monitor().set_up(ids[0], true);
            }
        });
        held.into_iter().for_each(drop);
        join(urgent);
        lower.into_iter().for_each(join);
        join(operator);
        assert_settled(&router);
    });
}

/// The slots of each upstream that are taken, without a step of the schedule.
#[derive(Clone, Default)]
struct Taken(Arc<Mutex<BTreeMap<UpstreamId, u32>>>);

// === impl Taken ===

impl Taken {
    fn change(&self, slot: &Assignment, change: impl FnOnce(&mut u32)) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(taken.entry(slot.upstream().id()).or_default());
    }

    fn use_up(&self, slot: Assignment) {
        self.change(&slot, |taken| {
            *taken += 1;
            assert!(*taken <= 2, "each upstream has two slots");
        });
        linger();
        self.change(&slot, |taken| *taken -= 1);
        drop(slot);
    }
}

/// A request that waits, expires or leaves. Returns `true` if it got a slot.
fn ask_somehow(router: &PushRouter, taken: &Taken) -> bool {
    let model = MODELS[thread_rng().gen_range(0..3)];
    let ask = Ask { model, ..ask(any_priority()) };
    let wait_max = [LONG, LONG, SHORT][thread_rng().gen_range(0..3)];
    let mut acquire = Box::pin(router.acquire(&ask, wait_max));
    if thread_rng().gen_range(0..4) == 0 {
        let polled = acquire.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        linger();
        return polled.is_ready();
    }
    match block_on(acquire) {
        Ok(slot) => {
            taken.use_up(slot);
            true
        }
        Err(AcquireError::Expired { .. }) => {
            assert_eq!(wait_max, SHORT, "it may wait for as long as it takes");
            false
        }
        // The queue has room for three.
        Err(AcquireError::Displaced { .. } | AcquireError::Busy { .. }) => false,
        // For a moment no upstream is left.
        Err(AcquireError::Route(_)) => false,
    }
}

/// Changes the fleet at random, and leaves one upstream that is up and takes requests.
fn operate(router: &PushRouter, mut ids: Vec<UpstreamId>) {
    let monitor = router.monitor();
    let limit_to = |active_requests| {
        let thresholds = BusyThresholds { active_requests, ..BusyThresholds::OFF };
        for (model, _) in monitor.thresholds() {
            // It may be gone by now.
            let _ = monitor.change_thresholds(&model, |_| thresholds);
        }
    };
    let models = ["a", "b"].map(str::to_owned);
    for _ in 0..4 {
        let id = ids[thread_rng().gen_range(0..ids.len())];
        match thread_rng().gen_range(0..6) {
            0 => _ = monitor.set_up(id, false),
            1 => _ = monitor.set_up(id, true),
            2 => limit_to([Some(0), None][thread_rng().gen_range(0..2)]),
            3 => monitor.set_models(id, Some(&models[thread_rng().gen_range(0..2)..])),
            4 => monitor.set_models(id, None),
            _ => {
                monitor.remove_upstream(id);
                ids.retain(|known| *known != id);
                linger();
                ids.push(monitor.add_upstream("another", None));
            }
        }
        linger();
    }
    ids.iter().for_each(|id| monitor.set_models(*id, None));
    limit_to(None);
    ids.iter().for_each(|id| _ = monitor.set_up(*id, true));
}

/// Every request is served, refused or leaves, once; every slot comes back; nobody waits for ever.
#[test]
fn shuttle_nothing_is_lost_while_the_fleet_changes() {
    explore(|| {
        let (router, ids) = router(2, 2, 3);
        let taken = Taken::default();
        let start = |_| {
            let (router, taken) = (Arc::clone(&router), taken.clone());
            thread::spawn(move || {
                ask_somehow(&router, &taken);
                ask_somehow(&router, &taken);
            })
        };
        let requests: Vec<_> = (0..6).map(start).collect();
        let operator = thread::spawn({
            let router = Arc::clone(&router);
            move || operate(&router, ids)
        });
        requests.into_iter().for_each(join);
        join(operator);
        assert_settled(&router);
        assert!(router.route(&ask(Low)).is_ok(), "a slot is free");
    });
}
