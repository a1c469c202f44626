//! AD-32, part 6, client side, 4 and 5, on real sockets.

use super::support::{Frame, Manner, Server, TcpTransport, config, manager, until};
use std::time::{Duration, Instant};
use tidegate::MessageClass::{Data, Dispatch};
use tidegate::outbox::{HandBack, OutgoingConfig, OutgoingRequestManager, QueueConfig};

/// Round trips of each fast destination in a round, at least.
const TRIPS: u64 = 200;
/// Odd, so that the median is one that was measured.
const ROUNDS: u64 = 5;
/// More than Asia answers in a round, so that its queue is never empty.
const FOR_ASIA: u64 = 400;

const PATIENT: Duration = Duration::from_secs(120);

type Manager = OutgoingRequestManager<TcpTransport>;

/// The times of round trips to one fast destination, at least so many and until this holds.
async fn trips(manager: &Manager, server: &Server, enough: impl Fn() -> bool) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut number = 0;
    while number < TRIPS || !enough() {
        let start = Instant::now();
        let reply = manager.send(&server.address, Dispatch, Frame::new(number)).await;
        assert_eq!(reply.expect("a fast destination answers"), number);
        times.push(start.elapsed());
        number += 1;
    }
    times
}

/// The median over three fast destinations that are used at once.
async fn median_trip(manager: &Manager, fast: &[Server; 3], enough: impl Fn() -> bool) -> f64 {
    let [us, eu, sa] = fast.each_ref().map(|server| trips(manager, server, &enough));
    let (us, eu, sa) = tokio::join!(us, eu, sa);
    let mut times = [us, eu, sa].concat();
    times.sort();
    for server in fast {
        let stats = manager.stats_of(&server.address).expect("it has a queue");
        assert_eq!((stats.queue.total_dropped, stats.sender.total_failed), (0, 0));
    }
    times[times.len() / 2].as_secs_f64()
}

fn quick() -> (Manager, HandBack<TcpTransport>) {
    // Nothing here is to fail by its time: clients and servers share one thread, and it may stand still.
    let (attempt_timeout, message_timeout) = (PATIENT, PATIENT);
    manager(TcpTransport::new(), OutgoingConfig { attempt_timeout, message_timeout, ..config() })
}

/// Asia answers after 300 ms and closes each third connection; Africa takes a message and never answers. The
/// fast destinations are measured without the two and beside them in turn, and that is compared within a round.
#[tokio::test]
async fn ad32_client_integration_4_slow_destination_does_not_block_fast_ones() {
    let fast = [
        Server::start(Manner::Fast).await,
        Server::start(Manner::Fast).await,
        Server::start(Manner::Fast).await,
    ];
    let delay = Duration::from_millis(300);
    let lossy = Manner::Lossy { delay, closes_each: 3, swallows_each: u64::MAX };
    let (asia, africa) = (Server::start(lossy).await, Server::start(Manner::Stalled).await);
    let mut ratios = Vec::new();
    for round in 0..ROUNDS {
        let (without, _hand_back) = quick();
        let alone = median_trip(&without, &fast, || true).await;
        drop(without);

        let (with, mut hand_back) = quick();
        for number in 0..FOR_ASIA {
            let frame = Frame::new(round * FOR_ASIA + number);
            let _ = with.enqueue(&asia.address, Data, frame).expect("there is room");
            let _ = with.enqueue(&africa.address, Data, Frame::new(number)).expect("there is room");
        }
        let before = asia.received().len();
        let beside = median_trip(&with, &fast, || asia.received().len() >= before + 4).await;
        ratios.push(beside / alone);
        let slow = with.stats_of(&asia.address).expect("it has a queue");
        // One may be on its way.
        let left = FOR_ASIA as usize - (asia.received().len() - before) - 1;
        assert!(slow.queue.primary_size >= left, "it is the slow one that waits: {slow:?}");
        let silent = with.stats_of(&africa.address).expect("it has a queue");
        assert_eq!(
            silent.queue.primary_size,
            FOR_ASIA as usize - 1,
            "one is under way: {silent:?}"
        );
        let lost = hand_back.recv().await.expect("Asia closes each third");
        assert!(lost.error.maybe_delivered, "{lost:?}");
    }
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[ratios.len() / 2];
    println!(
        "a fast round trip beside a slow destination / without one: {ratio:.2} of {ratios:.2?}"
    );
    assert!(ratio < 2.0, "the median round trip became {ratio:.2} times as long");

    // An answer that is lost is not a message that is: nothing was sent twice.
    let received = asia.received();
    for round in 0..ROUNDS {
        let of_round = |number: &&u64| **number / FOR_ASIA == round;
        let numbers: Vec<_> = received.iter().filter(of_round).collect();
        assert!(numbers.len() >= 4 && numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    }
}

#[tokio::test]
async fn ad32_client_integration_5_overflow_preserves_newest_messages() {
    let queue = QueueConfig { primary_size: 50, overflow_size: 10, ..QueueConfig::default() };
    let (manager, _hand_back) = manager(
        TcpTransport::new(),
        OutgoingConfig { queue, attempt_timeout: PATIENT, message_timeout: PATIENT, ..config() },
    );
    let server = Server::start(Manner::Stalled).await;
    let put = |number| manager.enqueue(&server.address, Data, Frame::new(number));
    let _ = put(0).expect("it is empty");
    until("0 is being sent", || manager.stats()[0].sender.in_flight == 1).await;
    let mut dropped = Vec::new();
    for number in 1..=500 {
        let put = put(number).expect("data makes room for itself");
        dropped.extend(put.dropped.map(|frame| frame.number));
    }
    assert_eq!(dropped, (1..=440).collect::<Vec<_>>(), "the oldest, each returned");
    server.set(Manner::Fast);
    until("the newest has arrived", || server.received().last() == Some(&500)).await;
    let mut expected = vec![0];
    expected.extend(441..=500);
    assert_eq!(server.received(), expected, "the newest 60, in order, behind what was under way");
    let stats = &manager.stats()[0];
    assert_eq!((stats.queue.total_enqueued, stats.queue.total_dropped), (501, 440));
}
