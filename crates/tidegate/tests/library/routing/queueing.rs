//! Requests that wait for an upstream: in the order of their priorities, fair between clients, and without losing
//! a slot.

use super::support::{ms, requests};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegate::MessagePriority::{self, High, Low, Normal};
use tidegate::queue::{FlowId, PoolQueueConfig, WaitTarget};
use tidegate::routing::{
    AcquireError, Ask, Assignment, BusyThresholds, Charge, MonitorConfig, Pick, PushRouter,
    UpstreamId, UpstreamLimit, WorkerMonitor,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

const LONG: Duration = Duration::from_secs(60);

/// A router over upstreams with this limit, whose queue turns nobody away before the deadline.
fn router(upstreams: usize, limit: u32, size: usize) -> (Arc<PushRouter>, Vec<UpstreamId>) {
    let target = WaitTarget { min: LONG, max: LONG, ..WaitTarget::default() };
    let queue = PoolQueueConfig { size, overflow_size: 0, target, ..PoolQueueConfig::default() };
    let config =
        MonitorConfig { limit: UpstreamLimit::Fixed(limit), queue, ..MonitorConfig::default() };
    let monitor = Arc::new(WorkerMonitor::new(config));
    let name = |number| format!("upstream-{number}");
    let ids = (0..upstreams).map(|number| monitor.add_upstream(&name(number), None)).collect();
    (Arc::new(PushRouter::new(monitor, Pick::PowerOfTwo)), ids)
}

fn waiting(router: &PushRouter) -> usize {
    let models = router.monitor().models();
    models.iter().map(|model| model.queue.high + model.queue.normal + model.queue.low).sum()
}

fn in_flight(router: &PushRouter) -> u64 {
    router.monitor().upstreams().iter().map(|upstream| upstream.in_flight).sum()
}

fn ask(priority: MessagePriority) -> Ask<'static> {
    Ask { priority, ..Ask::default() }
}

/// A request that waits on a task of its own, once it does.
async fn queued(
    router: &Arc<PushRouter>,
    ask: Ask<'static>,
    wait_max: Duration,
) -> JoinHandle<Result<Assignment, AcquireError>> {
    let before = waiting(router);
    let cloned = Arc::clone(router);
    let task = tokio::spawn(async move { cloned.acquire(&ask, wait_max).await });
    for _ in 0..10_000 {
        if waiting(router) != before || task.is_finished() {
            break;
        }
        tokio::task::yield_now().await;
    }
    task
}

#[tokio::test]
async fn slots_go_to_the_most_urgent_and_then_to_the_longest_wait() {
    let (router, _) = router(1, 1, 100);
    let first = router.acquire(&ask(Low), LONG).await.expect("free");
    let (served, mut order) = mpsc::unbounded_channel();
    for (name, priority) in
        [("l1", Low), ("n1", Normal), ("h1", High), ("l2", Low), ("h2", High), ("n2", Normal)]
    {
        let (cloned, served) = (Arc::clone(&router), served.clone());
        let before = waiting(&router);
        tokio::spawn(async move {
            let slot = cloned.acquire(&ask(priority), LONG).await;
            served.send(name).expect("the test waits");
            tokio::task::yield_now().await;
            drop(slot);
        });
        while waiting(&router) == before {
            tokio::task::yield_now().await;
        }
    }
    drop(first);
    let mut names = Vec::new();
    for _ in 0..6 {
        names.push(order.recv().await.expect("all are served"));
    }
    assert_eq!(names, ["h1", "h2", "n1", "n2", "l1", "l2"]);
}

#[tokio::test]
async fn a_request_that_does_not_wait_overtakes_no_other() {
    let (router, ids) = router(2, 1, 100);
    let held: Vec<_> = (0..2).map(|_| router.route(&ask(Normal)).expect("free")).collect();
    // It may not go to the first, so it waits although that one becomes free.
    let not: &'static [UpstreamId] = Box::leak(Box::new([ids[0]]));
    let picky = queued(&router, Ask { not, ..ask(Normal) }, LONG).await;
    let (first, second): (Vec<_>, Vec<_>) =
        held.into_iter().partition(|held| held.upstream().id() == ids[0]);
    drop(first);
    assert!(!picky.is_finished());
    assert!(router.route(&ask(Normal)).is_err(), "one of its priority waits");
    assert!(router.route(&ask(Low)).is_err());
    let urgent = router.route(&ask(High)).expect("nobody more urgent waits");
    assert_eq!(urgent.upstream().id(), ids[0]);
    drop(second);
    let served = picky.await.expect("no panic").expect("its upstream is free");
    assert_eq!(served.upstream().id(), ids[1]);
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_position_at_once_and_no_slot_is_lost() {
    let (router, _) = router(1, 1, 2);
    let first = router.acquire(&ask(Normal), LONG).await.expect("free");
    let leaves = queued(&router, ask(Normal), LONG).await;
    let stays = queued(&router, ask(Normal), LONG).await;
    let refused = router.acquire(&ask(Normal), LONG).await.expect_err("two wait");
    assert!(matches!(refused, AcquireError::Busy { position: 3, .. }), "{refused:?}");
    leaves.abort();
    assert!(leaves.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(waiting(&router), 1);
    drop(first);
    let slot = stays.await.expect("no panic").expect("it is its turn");
    assert_eq!(in_flight(&router), 1);
    drop(slot);
    assert_eq!((in_flight(&router), waiting(&router)), (0, 0));
}

#[tokio::test]
async fn a_wait_ends_at_its_deadline_and_at_the_bound_the_less_urgent_gives_way() {
    let (router, _) = router(1, 1, 1);
    let _held = router.acquire(&ask(Normal), LONG).await.expect("free");
    let hurried = queued(&router, ask(Low), ms(20)).await;
    let expired = hurried.await.expect("no panic").expect_err("no slot in 20 ms");
    assert!(matches!(expired, AcquireError::Expired { waited, .. } if waited >= ms(20)));
    let low = queued(&router, ask(Low), LONG).await;
    let cloned = Arc::clone(&router);
    let high = tokio::spawn(async move { cloned.acquire(&ask(High), LONG).await });
    let displaced = low.await.expect("no panic").expect_err("High takes its position");
    assert!(matches!(displaced, AcquireError::Displaced { .. }));
    assert!(!high.is_finished());
    high.abort();
}

#[tokio::test]
async fn whatever_frees_a_slot_serves_the_queue() {
    let (router, ids) = router(1, 1, 10);
    let monitor = router.monitor();
    // A second upstream.
    let held = router.acquire(&ask(Normal), LONG).await.expect("free");
    let waits = queued(&router, ask(Normal), LONG).await;
    let second = monitor.add_upstream("second", None);
    let on_second = waits.await.expect("no panic").expect("a new upstream has room");
    assert_eq!(on_second.upstream().id(), second);
    // One that comes up again.
    drop(held);
    monitor.set_up(ids[0], false);
    let waits = queued(&router, ask(Normal), LONG).await;
    assert!(!waits.is_finished());
    monitor.set_up(ids[0], true);
    let held = waits.await.expect("no panic").expect("it is up again");
    // A model that is gone: its requests ask again, and go where any model is served.
    let model = ["m".to_owned()];
    monitor.set_models(ids[0], Some(&model));
    let of_model = Ask { model: Some("m"), not: &[], ..ask(Normal) };
    let moved = queued(&router, of_model, LONG).await;
    assert_eq!(waiting(&router), 1);
    monitor.set_models(ids[0], None);
    assert!(!moved.is_finished());
    drop(held);
    assert!(moved.await.expect("no panic").is_ok(), "its turn came in the other queue");
}

#[tokio::test]
async fn a_threshold_that_is_raised_serves_the_queue() {
    let config = MonitorConfig { thresholds: requests(1), ..MonitorConfig::default() };
    let monitor = Arc::new(WorkerMonitor::new(config));
    monitor.add_upstream("one", None);
    let router = Arc::new(PushRouter::new(monitor, Pick::PowerOfTwo));
    let _held = router.acquire(&ask(Normal), LONG).await.expect("free");
    let waits = queued(&router, ask(Normal), LONG).await;
    let any = tidegate::routing::ANY_MODEL;
    router.monitor().change_thresholds(any, |_| BusyThresholds::OFF).expect("known");
    assert!(waits.await.expect("no panic").is_ok());
}

/// Ten requests of one client for each of the other, and each twice as dear: the scarce slots are shared 1 : 1 in
/// tokens.
#[tokio::test]
async fn two_clients_share_what_is_scarce_by_cost() {
    let (router, _) = router(1, 1, 1_000);
    let first = router.acquire(&ask(Normal), LONG).await.expect("free");
    let (served, mut order) = mpsc::unbounded_channel();
    let charge = |tokens| Charge::new(1, tokens);
    for number in 0..330_u64 {
        let (flow, tokens) = if number % 11 == 0 { (2, 50) } else { (1, 100) };
        let ask = Ask { flow: FlowId(flow), charge: charge(tokens), ..ask(Normal) };
        let (cloned, served) = (Arc::clone(&router), served.clone());
        tokio::spawn(async move {
            let _slot = cloned.acquire(&ask, LONG).await.expect("in time");
            served.send((flow, tokens)).expect("the test waits");
        });
    }
    while waiting(&router) < 330 {
        tokio::task::yield_now().await;
    }
    drop(first);
    let mut tokens = [0_u64; 3];
    for _ in 0..40 {
        let (flow, spent) = order.recv().await.expect("served");
        tokens[flow as usize] += spent;
    }
    assert!(tokens[1].abs_diff(tokens[2]) <= 200, "{tokens:?}");
}

/// Threads that take and give back slots, wait, leave and expire: the limit is never exceeded, nobody waits beside
/// a free slot, and in the end every slot is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_race_exceeds_the_limit_or_loses_a_slot() {
    let (router, _) = router(4, 8, 10_000);
    let (now, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let counts = Arc::new((now, most, done));
    let tasks: Vec<_> = (0..400_usize)
        .map(|number| {
            let (router, counts) = (Arc::clone(&router), Arc::clone(&counts));
            tokio::spawn(async move {
                let (now, most, done) = &*counts;
                for round in 0..50_usize {
                    let priority = [High, Normal, Low][(number + round) % 3];
                    let flow = FlowId((number % 5) as u64);
                    let ask = Ask { flow, ..ask(priority) };
                    let wait = if (number + round) % 7 == 0 { ms(1) } else { LONG };
                    let acquired = match (number + round) % 11 {
                        // Leaves while it waits.
                        0 => tokio::time::timeout(ms(1), router.acquire(&ask, wait)).await,
                        _ => Ok(router.acquire(&ask, wait).await),
                    };
                    if let Ok(Ok(slot)) = acquired {
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        tokio::task::yield_now().await;
                        now.fetch_sub(1, Ordering::SeqCst);
                        drop(slot);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        let ended = tokio::time::timeout(Duration::from_secs(60), task).await;
        ended.expect("nobody is stuck").expect("no panic");
    }
    let (_, most, done) = &*counts;
    assert_eq!(most.load(Ordering::SeqCst), 32, "all slots, and not one more");
    assert!(done.load(Ordering::SeqCst) > 10_000);
    assert_eq!((in_flight(&router), waiting(&router)), (0, 0));
    let queue = router.monitor().models()[0].queue.totals;
    assert_eq!(queue.queued, queue.served + queue.expired + queue.left, "{queue:?}");
}
